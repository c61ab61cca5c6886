//! NVRTC: the text of a kernel to the machine code of an architecture.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use cudarc::nvrtc::sys;

use crate::headers;

/// All that decides on the code of a kernel.
#[derive(Debug, Hash)]
pub struct KernelSource {
    text: CString,
    options: Vec<CString>,
    /// Of the compiler.
    version: (i32, i32),
}

impl KernelSource {
    /// The text of a kernel behind the headers, for an architecture.
    ///
    /// # Errors
    /// Where there is no compiler.
    pub fn new(text: &str, capability: (u32, u32)) -> Result<KernelSource, String> {
        let whole: String = headers::all().map(|(_, header)| header).chain([text]).collect();
        let text = CString::new(whole).map_err(|e| e.to_string())?;
        // The instructions that Hopper alone has are asked for by a letter.
        let letter = if capability == (9, 0) { "a" } else { "" };
        let (major, minor) = capability;
        let architecture = format!("--gpu-architecture=sm_{major}{minor}{letter}");
        let architecture = CString::new(architecture).map_err(|e| e.to_string())?;
        // Products and sums are joined where a program says so, and nowhere else: the bits are the CPU's.
        let others = [c"--fmad=false", c"--std=c++17", c"-default-device"].map(CStr::to_owned);
        let options = [architecture].into_iter().chain(others).collect();
        Ok(KernelSource { text, options, version: version()? })
    }

    /// Compiles it.
    ///
    /// # Errors
    /// What the compiler said.
    pub fn compile(&self) -> Result<Vec<u8>, String> {
        compile(&self.text, &self.options)
    }
}

/// The version of the compiler.
///
/// # Errors
/// Where it does not say.
pub fn version() -> Result<(i32, i32), String> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: two numbers are written.
    said(unsafe { sys::nvrtcVersion(&mut major, &mut minor) })?;
    Ok((major, minor))
}

fn compile(source: &CStr, options: &[CString]) -> Result<Vec<u8>, String> {
    let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
    let mut program: sys::nvrtcProgram = ptr::null_mut();
    // SAFETY: texts that end with a zero and live until the call returns; there are no headers.
    said(unsafe {
        sys::nvrtcCreateProgram(
            &mut program,
            source.as_ptr(),
            c"kernel.cu".as_ptr(),
            0,
            ptr::null(),
            ptr::null(),
        )
    })?;
    // SAFETY: a program that was just made, and options that live until the call returns.
    let compiled =
        unsafe { sys::nvrtcCompileProgram(program, options.len() as i32, options.as_ptr()) };
    let made = match said(compiled) {
        Ok(()) => binary(program),
        Err(error) => Err(format!("{error}\n{}", log(program))),
    };
    // SAFETY: the program is not used from here on.
    let _ = unsafe { sys::nvrtcDestroyProgram(&mut program) };
    made
}

fn binary(program: sys::nvrtcProgram) -> Result<Vec<u8>, String> {
    let mut len = 0usize;
    // SAFETY: a program that was compiled; the size is written.
    said(unsafe { sys::nvrtcGetCUBINSize(program, &mut len) })?;
    let mut bytes = vec![0u8; len];
    // SAFETY: so many bytes are written.
    said(unsafe { sys::nvrtcGetCUBIN(program, bytes.as_mut_ptr().cast::<c_char>()) })?;
    Ok(bytes)
}

/// What the compiler had to say.
fn log(program: sys::nvrtcProgram) -> String {
    let mut len = 0usize;
    // SAFETY: the size is written.
    if said(unsafe { sys::nvrtcGetProgramLogSize(program, &mut len) }).is_err() {
        return String::new();
    }
    let mut bytes = vec![0u8; len];
    // SAFETY: so many bytes are written.
    let _ = unsafe { sys::nvrtcGetProgramLog(program, bytes.as_mut_ptr().cast::<c_char>()) };
    String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_string()
}

fn said(result: sys::nvrtcResult) -> Result<(), String> {
    match result {
        sys::nvrtcResult::NVRTC_SUCCESS => Ok(()),
        other => Err(format!("NVRTC: {other:?}")),
    }
}
