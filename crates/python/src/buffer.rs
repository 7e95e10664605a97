//! Access to memory of other libraries: rows of mask words and rows of logits in a NumPy array, a `bytearray`, or a
//! tensor of PyTorch.
//!
//! # What is accepted
//!
//! Every object with Python's buffer protocol, and tensors of PyTorch on the CPU, which do not have it. One dimension
//! is one row; two dimensions are rows. The elements of a row must be contiguous, but there may be gaps between rows.
//! Mask words are 32-bit integers, signed or unsigned, or plain bytes, four for each word.
//!
//! # Why `unsafe`
//!
//! Masks are written by several threads while the GIL is released, so the memory must be accessed through a pointer.
//! Only this file does that, and its safety argument is the following.
//!
//! 1. *The memory is alive.* A view and its rows own the exported buffer, which forbids its owner to move or free it (a
//!    `bytearray` cannot be resized meanwhile), or hold a reference to the tensor, whose storage lives as long as the
//!    tensor unless it is resized in place at the same time.
//! 2. *It is as large as assumed.* Shape and strides come from the buffer or the tensor; [`View::new`] refuses negative
//!    strides, rows that overlap and pointers that are not aligned.
//! 3. *It is copied, never borrowed.* Python code on another thread could write the array at the same time, as it can
//!    while NumPy computes, so no reference to the memory is ever created: masks are computed in our own memory, and
//!    [`Row::write`] and [`Row::read`] copy through pointers. If another thread writes meanwhile, the words of a mask
//!    are a mixture. They are plain integers, every value of which is valid, and no index is computed from them.

#![expect(unsafe_code, reason = "this is the room for it; the argument is above")]

use std::sync::Arc;

use pyo3::buffer::{ElementType, PyUntypedBuffer};
use pyo3::exceptions::{PyBufferError, PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyMemoryView, PyType};
use pyo3::{ffi, intern};

/// The type of the elements of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// A 32-bit word of a mask.
    Word,
    F32,
    F16,
    Bf16,
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Self::Word | Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// Whether a view is opened for reading or for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Rows of memory that another object owns.
#[derive(Debug)]
pub(crate) struct View {
    start: *mut u8,
    element: Element,
    count: usize,
    /// The number of elements of a row.
    width: usize,
    /// The number of bytes from one row to the next.
    stride: usize,
    access: Access,
    owner: Arc<Owner>,
}

#[derive(Debug)]
enum Owner {
    Buffer { _buffer: PyUntypedBuffer },
    Tensor { _tensor: Py<PyAny> },
}

/// Shape and strides as reported by the owner; the strides are in bytes.
struct Layout {
    start: *mut u8,
    element: Element,
    shape: Vec<usize>,
    strides: Vec<isize>,
    /// How many elements of the shape make one of ours: 4 if the mask is given as bytes.
    per_element: usize,
}

impl View {
    /// Opens a view of mask words.
    pub(crate) fn words(object: &Bound<'_, PyAny>, access: Access) -> PyResult<Self> {
        let view = Self::open(object, access, "a mask")?;
        match view.element {
            Element::Word => Ok(view),
            _ => Err(PyTypeError::new_err(
                "a mask must be an array of 32-bit integers, and this one has floats",
            )),
        }
    }

    /// Opens a writable view of logits.
    pub(crate) fn logits(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let view = Self::open(object, Access::Write, "logits")?;
        match view.element {
            Element::Word => Err(PyTypeError::new_err(
                "logits must be float32, float16 or bfloat16, and these are integers",
            )),
            _ => Ok(view),
        }
    }

    fn open(object: &Bound<'_, PyAny>, access: Access, what: &str) -> PyResult<Self> {
        // SAFETY: the object is alive, and the thread attached.
        if unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) } == 1 {
            // Some buffers, such as those of ctypes, have no strides; a memoryview computes them.
            let buffer = PyUntypedBuffer::get(object)
                .or_else(|_| PyUntypedBuffer::get(PyMemoryView::from(object)?.as_any()))?;
            if access == Access::Write && buffer.readonly() {
                return Err(PyBufferError::new_err(format!(
                    "{what} must be writable, and this buffer is read-only"
                )));
            }
            let layout = buffer_layout(&buffer, what)?;
            return Self::new(layout, access, Owner::Buffer { _buffer: buffer }, what);
        }
        if let Some(layout) = tensor_layout(object, what)? {
            return Self::new(layout, access, Owner::Tensor { _tensor: object.clone().unbind() }, what);
        }
        Err(PyTypeError::new_err(format!(
            "{what} must be a writable buffer, such as a NumPy array or a bytearray, or a tensor of PyTorch on the CPU; this is {}",
            object.get_type().qualname()?
        )))
    }

    /// Checks a layout; see the module.
    fn new(layout: Layout, access: Access, owner: Owner, what: &str) -> PyResult<Self> {
        let Layout { start, element, shape, strides, per_element } = layout;
        let bytes = element.bytes();
        let (count, width, row, each) = match (&shape[..], &strides[..]) {
            (&[width], &[each]) => (1, width, 0, each),
            (&[count, width], &[row, each]) => (count, width, row, each),
            _ => {
                let message = format!("{what} must have one dimension or two, and this has {}", shape.len());
                return Err(PyValueError::new_err(message));
            }
        };
        if width % per_element != 0 {
            let message =
                format!("{what} given as bytes must have four bytes to a word, and a row has {width}");
            return Err(PyValueError::new_err(message));
        }
        if width > 1 && each != (bytes / per_element).cast_signed() {
            return Err(PyValueError::new_err(format!(
                "the elements of a row of {what} must be contiguous in memory"
            )));
        }
        let width = width / per_element;
        let stride = if count > 1 { usize::try_from(row).unwrap_or(0) } else { width * bytes };
        if stride < width * bytes || stride % bytes != 0 {
            return Err(PyValueError::new_err(format!(
                "the rows of {what} must follow each other in memory"
            )));
        }
        if count > 0 && width > 0 && (start.is_null() || start.addr() % bytes != 0) {
            return Err(PyValueError::new_err(format!(
                "{what} must be in memory, at an address that is a multiple of {bytes}"
            )));
        }
        Ok(Self { start, element, count, width, stride, access, owner: Arc::new(owner) })
    }

    pub(crate) fn element(&self) -> Element {
        self.element
    }

    /// Returns the number of rows.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of elements of a row.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns one row.
    pub(crate) fn row(&self, number: usize) -> PyResult<Row> {
        if number >= self.count {
            return Err(PyIndexError::new_err(format!("there is no row {number}: there are {}", self.count)));
        }
        // SAFETY: the row is inside the memory (2); an empty array is not accessed.
        let start =
            if self.width == 0 { self.start } else { unsafe { self.start.add(number * self.stride) } };
        let (width, element, access) = (self.width, self.element, self.access);
        Ok(Row { start, width, element, access, _owner: self.owner.clone() })
    }
}

/// One row of a view. It keeps the memory alive, and can be sent to another thread.
#[derive(Debug)]
pub(crate) struct Row {
    start: *mut u8,
    width: usize,
    element: Element,
    access: Access,
    _owner: Arc<Owner>,
}

// SAFETY: a row is a piece of memory that it keeps alive (1), and that is only copied (3).
unsafe impl Send for Row {}

/// Types that elements are read as: plain numbers, for which every bit pattern is valid.
pub(crate) trait Plain: Copy + Default {
    const ELEMENT: Element;
}

impl Plain for u32 {
    const ELEMENT: Element = Element::Word;
}

impl Plain for f32 {
    const ELEMENT: Element = Element::F32;
}

impl Plain for half::f16 {
    const ELEMENT: Element = Element::F16;
}

impl Plain for half::bf16 {
    const ELEMENT: Element = Element::Bf16;
}

impl Row {
    /// Returns the number of elements.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Copies a mask into the row, and clears the rest of the row. The mask must fit.
    pub(crate) fn write_mask(&mut self, words: &[u32]) {
        const ZEROS: [u32; 256] = [0; 256];
        self.write(0, words);
        let mut at = words.len();
        while at < self.width {
            let zeros = &ZEROS[..ZEROS.len().min(self.width - at)];
            self.write(at, zeros);
            at += zeros.len();
        }
    }

    /// Copies elements, which must have the view's type, into the row, starting at element `at`.
    pub(crate) fn write<T: Plain>(&mut self, at: usize, from: &[T]) {
        assert!(self.access == Access::Write, "the caller has opened the view for writing");
        if let Some(start) = self.place::<T>(at, from.len()) {
            // SAFETY: the memory is alive (1), large enough and aligned (2), and not that of a Rust value (3), as
            // `from` is.
            unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), start, from.len()) }
        }
    }

    /// Copies elements out of the row, starting at element `at`.
    pub(crate) fn read<T: Plain>(&self, at: usize, to: &mut [T]) {
        if let Some(start) = self.place::<T>(at, to.len()) {
            // SAFETY: as above, in the other direction.
            unsafe { core::ptr::copy_nonoverlapping(start.cast_const(), to.as_mut_ptr(), to.len()) }
        }
    }

    /// Returns the address of some elements; `None` if there are none.
    fn place<T: Plain>(&self, at: usize, count: usize) -> Option<*mut T> {
        assert!(self.element == T::ELEMENT, "the caller has checked the view");
        assert!(at <= self.width && count <= self.width - at, "the caller stays within the row");
        // SAFETY: the element is inside the row, as asserted above.
        (count > 0).then(|| unsafe { self.start.cast::<T>().add(at) })
    }
}

fn buffer_layout(buffer: &PyUntypedBuffer, what: &str) -> PyResult<Layout> {
    let (element, per_element) = match ElementType::from_format(buffer.format()) {
        ElementType::SignedInteger { bytes: 4 } | ElementType::UnsignedInteger { bytes: 4 } => {
            (Element::Word, 1)
        }
        ElementType::SignedInteger { bytes: 1 } | ElementType::UnsignedInteger { bytes: 1 } => {
            (Element::Word, 4)
        }
        ElementType::Float { bytes: 4 } => (Element::F32, 1),
        ElementType::Float { bytes: 2 } => (Element::F16, 1),
        _ => return Err(wrong_elements(what, &buffer.format().to_string_lossy())),
    };
    if buffer.suboffsets().is_some()
        || buffer.format().to_bytes().first().is_some_and(|first| is_foreign(*first))
    {
        return Err(wrong_elements(what, &buffer.format().to_string_lossy()));
    }
    let (shape, strides) = (buffer.shape().to_vec(), buffer.strides().to_vec());
    Ok(Layout { start: buffer.buf_ptr().cast(), element, shape, strides, per_element })
}

/// Whether a format is in the byte order of other machines.
fn is_foreign(first: u8) -> bool {
    if cfg!(target_endian = "little") { matches!(first, b'>' | b'!') } else { first == b'<' }
}

fn wrong_elements(what: &str, found: &str) -> PyErr {
    let wanted = if what == "logits" { "float32, float16 or bfloat16" } else { "32-bit integers" };
    PyTypeError::new_err(format!("the elements of {what} must be {wanted}, and these are {found:?}"))
}

/// Returns the layout of a tensor of PyTorch; `None` for other objects.
fn tensor_layout(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Option<Layout>> {
    let py = object.py();
    let Some(torch) = Torch::get(py)? else { return Ok(None) };
    if !object.is_instance(torch.tensor.bind(py))? {
        return Ok(None);
    }
    if !object.getattr(intern!(py, "is_cpu"))?.extract::<bool>()? {
        let device = object.getattr(intern!(py, "device"))?;
        let message = format!(
            "{what} must be on the CPU, and this tensor is on {device}; fill a tensor of the CPU and copy it"
        );
        return Err(PyValueError::new_err(message));
    }
    let dtype = object.getattr(intern!(py, "dtype"))?;
    let known = torch.dtypes.iter().find(|(known, ..)| known.is(&dtype));
    let Some(&(_, element, per_element)) = known else {
        return Err(wrong_elements(what, &dtype.str()?.to_string_lossy()));
    };
    let bytes = (element.bytes() / per_element).cast_signed();
    let shape: Vec<usize> = object.getattr(intern!(py, "shape"))?.extract()?;
    let strides: Vec<isize> = object.call_method0(intern!(py, "stride"))?.extract()?;
    let strides = strides.into_iter().map(|stride| stride.saturating_mul(bytes)).collect();
    let start: usize = object.call_method0(intern!(py, "data_ptr"))?.extract()?;
    let start = core::ptr::with_exposed_provenance_mut(start);
    Ok(Some(Layout { start, element, shape, strides, per_element }))
}

/// The types of PyTorch that are needed to recognize tensors. PyTorch is not imported for that: if nothing has imported
/// it, no object can be a tensor.
struct Torch {
    tensor: Py<PyType>,
    /// Element types of PyTorch, our type for each, and how many of them make one of ours.
    dtypes: Vec<(Py<PyAny>, Element, usize)>,
}

impl Torch {
    fn get(py: Python<'_>) -> PyResult<Option<&'static Self>> {
        static TORCH: PyOnceLock<Torch> = PyOnceLock::new();
        if let Some(known) = TORCH.get(py) {
            return Ok(Some(known));
        }
        let modules = py.import(intern!(py, "sys"))?.getattr(intern!(py, "modules"))?;
        let module = modules.call_method1(intern!(py, "get"), (intern!(py, "torch"),))?;
        // PyTorch may be only partially imported, or another module may have its name.
        let Some(tensor) = module.getattr_opt("Tensor")? else { return Ok(None) };
        let Ok(tensor) = tensor.cast_into::<PyType>() else { return Ok(None) };
        let mut dtypes = Vec::new();
        let names = [
            ("int32", Element::Word, 1),
            ("uint32", Element::Word, 1),
            ("int8", Element::Word, 4),
            ("uint8", Element::Word, 4),
            ("float32", Element::F32, 1),
            ("float16", Element::F16, 1),
            ("bfloat16", Element::Bf16, 1),
        ];
        for (name, element, per_element) in names {
            if let Some(dtype) = module.getattr_opt(name)? {
                dtypes.push((dtype.unbind(), element, per_element));
            }
        }
        Ok(Some(TORCH.get_or_init(py, || Self { tensor: tensor.unbind(), dtypes })))
    }
}
