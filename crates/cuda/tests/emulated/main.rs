//! Kernels without a GPU: the text that a device would compile, compiled by the host's C++ compiler and run with a block's threads one after
//! the other, gives the CPU's bits.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    unsafe_code,
    reason = "helpers of tests stand outside of test functions, and call what was compiled"
)]

mod assertion;
mod attention;
mod cases;
mod compile;
mod draw;
mod record;
mod registers;
mod rows;

use std::collections::HashMap;

use cases::cases;
use compile::{FILES, Library};
use tonnage_cuda::driver::{Status, library};
use tonnage_cuda::emit::{KernelKey, Launch};

/// Something that is run by a kernel, and what the CPU makes of it.
trait Trial: Sync {
    /// What a device would launch; nothing where there is nothing to do.
    fn launch(&self) -> Option<Launch>;
    /// Whether the kernel made the same, and what it said of its data.
    fn check(&self, status: &Status) -> Result<(), String>;
}

/// What one case launches, and the kernel that runs it.
fn launches(cases: &[Box<dyn Trial>]) -> (Vec<KernelKey>, Vec<Option<(usize, Launch)>>) {
    let (mut keys, mut numbers) = (Vec::new(), HashMap::new());
    let made = cases
        .iter()
        .map(|case| {
            let launch = case.launch()?;
            let number = *numbers.entry(launch.key.clone()).or_insert_with(|| {
                keys.push(launch.key.clone());
                keys.len() - 1
            });
            Some((number, launch))
        })
        .collect();
    (keys, made)
}

/// Whether a kernel is asked for: those whose name has the word that `TONNAGE_KERNELS` is, or all.
fn is_asked_for(key: &KernelKey) -> bool {
    std::env::var("TONNAGE_KERNELS").map_or(true, |word| key.to_string().contains(&word))
}

#[test]
fn kernels_give_the_bits_of_the_cpu() {
    let mut cases = cases();
    cases.retain(|case| case.launch().is_none_or(|launch| is_asked_for(&launch.key)));
    let (keys, launches) = launches(&cases);
    let Some(library) = Library::of(&keys, &launches) else {
        println!("SKIPPED: no C++ compiler, or no FMA");
        return;
    };
    let check = |case: &dyn Trial, launch: &Option<(usize, Launch)>| {
        let status = match launch {
            Some((number, launch)) => library.run(*number, launch),
            None => Status::default(),
        };
        case.check(&status).err()
    };
    // Each file of kernels has shared memory of its own, so one thread runs what is in it.
    let of_file = |file: usize| {
        let is_in = |launch: &Option<(usize, Launch)>| {
            launch.as_ref().map_or(file == 0, |(number, _)| Library::file_of(*number) == file)
        };
        let own = cases.iter().zip(&launches).filter(|(_, launch)| is_in(launch));
        own.filter_map(|(case, launch)| check(&**case, launch)).collect::<Vec<_>>()
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..FILES).map(|file| scope.spawn(move || of_file(file))).collect();
        running.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    println!("{} cases, {} kernels", cases.len(), keys.len());
    assert!(
        wrong.is_empty(),
        "{} of {} wrong:\n{}",
        wrong.len(),
        cases.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

#[test]
fn kernels_that_changed_since_the_record_of_hardware_are_named() {
    record::compare(&launches(&cases()).0);
}

#[test]
fn kernels_have_no_stack_frame_and_the_registers_of_the_file() {
    match library::find_compiler() {
        Ok(()) => {
            let mut keys = launches(&cases()).0;
            keys.retain(is_asked_for);
            registers::compare(&keys);
        }
        Err(what) => println!("SKIPPED: {what}"),
    }
}
