//! Many kernels as one library of the host.

use std::ffi::c_void;
use std::fmt::Write as _;
use std::process::Command;

use libloading::{Library as Loaded, Symbol};
use tonnage_cuda::driver::Status;
use tonnage_cuda::emit::{KernelKey, Launch};
use tonnage_cuda::headers;

/// The functions of some kernels, compiled.
pub struct Library {
    loaded: Vec<Loaded>,
}

/// Compilers that run side by side, each over a file. Kernels are dealt out, since those that take long to compile are neighbours.
pub const FILES: usize = 2;

impl Library {
    /// Compiles kernels; nothing where this machine cannot.
    pub fn of(keys: &[KernelKey], launches: &[Option<(usize, Launch)>]) -> Option<Library> {
        let compiler = ["c++", "g++", "clang++"].into_iter().find(|name| {
            Command::new(name).arg("--version").output().is_ok_and(|out| out.status.success())
        })?;
        if !has_fma() {
            return None;
        }
        let folder = std::env::temp_dir().join(format!("tonnage-emulated-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let functions = |number: usize| {
            let found = launches.iter().flatten().find(|(n, _)| *n == number);
            let (_, launch) = found.expect("a kernel that something launches");
            launch.functions.iter().map(|(name, _)| *name).collect::<Vec<_>>()
        };
        let mut running = Vec::new();
        for file in 0..FILES {
            let mut text = String::from(include_str!("../formulas/prelude.h"));
            text.push_str(include_str!("threads.h"));
            headers::all().for_each(|(_, header)| text.push_str(header));
            text.push_str(include_str!("warp.h"));
            text.push_str(include_str!("groups.h"));
            let mut table = String::new();
            for (i, key) in keys.iter().skip(file).step_by(FILES).enumerate() {
                let kernel = key.text();
                // What the text of one kernel defines is no other's.
                let _ = writeln!(
                    text,
                    "#undef TN_THREADS\n#define TN_THREADS 256\nnamespace k{i} {{\n{kernel}"
                );
                for (f, name) in functions(i * FILES + file).iter().enumerate() {
                    let _ = writeln!(
                        text,
                        "static void call{f}(const void* p, void* s, unsigned l) {{ {name}(*(const P*)p, (Status*)s, l); }}"
                    );
                    let threads = key.block(name).threads;
                    // A device refuses to launch more.
                    let _ = writeln!(
                        text,
                        "static_assert({name}_threads == {threads}, \"threads of a block\");"
                    );
                    let _ = writeln!(
                        table,
                        "  if (kernel == {i} && function == {f}) return threads::run(k{i}::call{f}, words, status, 1, blocks, {threads});"
                    );
                }
                text.push_str("}\n");
            }
            let _ = writeln!(
                text,
                "extern \"C\" __attribute__((visibility(\"default\"))) void run(unsigned kernel, unsigned function, unsigned blocks, const void* words, void* status) {{\n{table}}}"
            );
            let (source, made) =
                (folder.join(format!("k{file}.cc")), folder.join(format!("k{file}.so")));
            std::fs::write(&source, text).unwrap();
            let child = Command::new(compiler)
                .args([
                    "-std=c++17",
                    // Compiling takes longer than running.
                    "-Og",
                    "-w",
                    "-ffp-contract=off",
                    "-mfma",
                    "-fPIC",
                    // What is shared by a block is no other library's.
                    "-fvisibility=hidden",
                    "-shared",
                    "-o",
                ])
                .args([&made, &source])
                .spawn()
                .unwrap();
            running.push((child, made));
        }
        let mut loaded = Vec::new();
        for (mut child, made) in running {
            assert!(
                child.wait().unwrap().success(),
                "the compiler refused a kernel: see {}",
                folder.display()
            );
            // SAFETY: a library of functions without start-up code.
            loaded.push(unsafe { Loaded::new(&made) }.unwrap());
        }
        std::fs::remove_dir_all(&folder).unwrap();
        Some(Library { loaded })
    }

    /// The file that a kernel is in.
    pub fn file_of(number: usize) -> usize {
        number % FILES
    }

    /// Runs a launch: addresses in its words are the host's. What it says of bad data.
    pub fn run(&self, number: usize, launch: &Launch) -> Status {
        let library = &self.loaded[Library::file_of(number)];
        // SAFETY: the function has these arguments.
        let run: Symbol<unsafe extern "C" fn(u32, u32, u32, *const c_void, *mut Status)> =
            unsafe { library.get(b"run") }.unwrap();
        let mut status = Status::default();
        for (f, (_, blocks)) in launch.functions.iter().enumerate() {
            // SAFETY: the words hold addresses of buffers that live, and the kernel stays within their layouts.
            unsafe {
                run(
                    (number / FILES) as u32,
                    f as u32,
                    *blocks,
                    launch.words.as_ptr().cast(),
                    &mut status,
                )
            };
        }
        status
    }
}

fn has_fma() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}
