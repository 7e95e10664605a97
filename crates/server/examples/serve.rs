//! The smallest server: `cargo run --release -p maskwright-server --example serve -- model.gguf 127.0.0.1:8000`.
//!
//! `maskwright serve` has flags, keys, logs and an orderly end besides.

use std::{error::Error, io::Write, sync::Arc};

use maskwright::{
    Compiler,
    service::{Service, Settings as Compiling},
};
use maskwright_runtime::{Loaded, model::LoadOptions, scheduler::Options};
use maskwright_server::{Engine, Parts, Server, Settings};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(model), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err("give a model and an address, as in model.gguf 127.0.0.1:8000".into());
    };
    let loaded = Loaded::open(model, &LoadOptions::default())?;
    let compiler = Arc::new(Compiler::new(loaded.tokenizer.vocabulary().clone()));
    let service = Service::new(Compiling::default())?;
    let engine = Engine::start(Parts::loaded(loaded, "model"), Options::default(), &service, compiler)?;
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(std::io::stdout(), "serving at http://{}", listener.local_addr()?)?;
    Server::new(engine, Settings::default())
        .serve(listener, async { tokio::signal::ctrl_c().await.unwrap_or_default() })
        .await?;
    Ok(())
}
