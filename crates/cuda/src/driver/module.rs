//! Kernels that were compiled and loaded, and their launches.

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::ptr;
use std::sync::{Mutex, PoisonError};

use cudarc::driver::sys;
use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::source::Source;

use super::compiler::KernelSource;
use super::{Gpu, said};
use crate::cache::{CacheKey, KernelCache};
use crate::emit::{Block, Demand, KernelKey, Launch};

/// Shared memory that a block of threads has without being asked for.
const SHARED_BYTES: u32 = 48 << 10;

/// Kernels by their keys.
pub struct Modules {
    capability: (u32, u32),
    cache: KernelCache,
    loaded: Mutex<HashMap<KernelKey, Functions>>,
}

/// The functions of a kernel, in the order of their launches. Their module stays loaded.
type Functions = SmallVec<[sys::CUfunction; 2]>;

impl Modules {
    pub fn new(capability: (u32, u32), cache: KernelCache) -> Modules {
        Modules { capability, cache, loaded: Mutex::default() }
    }

    /// The functions of a kernel, compiled where it is new.
    fn load(&self, launch: &Launch) -> std::result::Result<Functions, String> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(functions) = loaded.get(&launch.key) {
            return Ok(functions.clone());
        }
        let source = KernelSource::new(&launch.key.text(), self.capability)?;
        let key = CacheKey::of(&source);
        let binary = match self.cache.get(key) {
            Some(binary) => binary,
            None => {
                let binary = source.compile()?;
                self.cache.put(key, &binary);
                binary
            }
        };
        let mut module: sys::CUmodule = ptr::null_mut();
        // SAFETY: the context is current, and the bytes are what the compiler made.
        said(unsafe { sys::cuModuleLoadData(&mut module, binary.as_ptr().cast()) })?;
        let mut functions = Functions::new();
        for (name, _) in &launch.functions {
            let symbol = CString::new(*name).map_err(|e| e.to_string())?;
            let mut function: sys::CUfunction = ptr::null_mut();
            // SAFETY: a module that stays loaded, and a name that ends with a zero.
            said(unsafe { sys::cuModuleGetFunction(&mut function, module, symbol.as_ptr()) })?;
            let shared = launch.key.block(name).shared;
            if shared > SHARED_BYTES {
                use sys::CUfunction_attribute as Attribute;
                let most = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                // SAFETY: a function that was just found.
                said(unsafe { sys::cuFuncSetAttribute(function, most, shared as i32) })?;
            }
            functions.push(function);
        }
        loaded.insert(launch.key.clone(), functions.clone());
        Ok(functions)
    }
}

/// A function and the threads that run it.
#[derive(Debug, Clone, Copy)]
struct Grid {
    function: sys::CUfunction,
    blocks: u32,
    block: Block,
}

/// A kernel of one function that is loaded, with its grid: what is left to say are its words.
#[derive(Debug, Clone, Copy)]
pub struct LoadedKernel {
    grid: Grid,
    words: usize,
}

// SAFETY: the handle of a function may be used by any thread that has made the context current, as a launch does first.
unsafe impl Send for LoadedKernel {}

impl Gpu {
    /// Launches a kernel, compiled where it is new, for an op of that line.
    ///
    /// # Errors
    /// Where it cannot be compiled or launched.
    pub fn launch(&self, launch: &Launch, source: Option<&Source>) -> Result<()> {
        self.enter()?;
        let functions = self.modules.load(launch).map_err(|what| self.failed(what))?;
        let grids = functions.iter().zip(&launch.functions);
        let grids = grids.map(|(function, (name, blocks))| Grid {
            function: *function,
            blocks: *blocks,
            block: launch.key.block(name),
        });
        self.launch_all(grids, &launch.words, launch.demand.as_ref(), source)
    }

    /// The kernel of a launch, compiled where it is new, to be launched again; nothing where it has several functions, or looks at data.
    ///
    /// # Errors
    /// Where it cannot be compiled.
    pub fn loaded(&self, launch: &Launch) -> Result<Option<LoadedKernel>> {
        self.enter()?;
        let functions = self.modules.load(launch).map_err(|what| self.failed(what))?;
        Ok(match (&functions[..], &launch.functions[..], &launch.demand) {
            ([function], [(name, blocks)], None) => {
                let (function, blocks) = (*function, *blocks);
                let grid = Grid { function, blocks, block: launch.key.block(name) };
                Some(LoadedKernel { grid, words: launch.words.len() })
            }
            _ => None,
        })
    }

    /// Launches it with as many words as it had.
    ///
    /// # Errors
    /// Where it cannot be launched.
    pub fn launch_again(
        &self,
        kernel: LoadedKernel,
        words: &[u64],
        source: Option<&Source>,
    ) -> Result<()> {
        if words.len() != kernel.words {
            return Err(self.failed("a launch with other words than before".to_string()));
        }
        self.enter()?;
        self.launch_all([kernel.grid].into_iter(), words, None, source)
    }

    fn launch_all(
        &self,
        grids: impl Iterator<Item = Grid>,
        words: &[u64],
        demand: Option<&Demand>,
        source: Option<&Source>,
    ) -> Result<()> {
        let (mut number, looks) = self.number(demand, source);
        let mut status = if looks { self.checks.address.get() as u64 } else { 0 };
        for Grid { function, blocks, block } in grids {
            let mut arguments = [
                words.as_ptr().cast_mut().cast::<c_void>(),
                (&raw mut status).cast(),
                (&raw mut number).cast(),
            ];
            // SAFETY: the kernel takes a struct of as many words as the launch has, an address and a number, which the driver copies;
            // addresses are the device's, and a wrong one makes the device fail.
            self.checked(unsafe {
                sys::cuLaunchKernel(
                    function,
                    blocks,
                    1,
                    1,
                    block.threads,
                    1,
                    1,
                    block.shared,
                    self.stream(),
                    arguments.as_mut_ptr(),
                    ptr::null_mut(),
                )
            })?;
        }
        Ok(())
    }
}
