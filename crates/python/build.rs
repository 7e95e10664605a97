//! Linker arguments that an extension module needs on some systems.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
