//! Checkpoints of several ranks: written in ranges by all, restored on any number of ranks and by one process, each rank reading its share.

use std::path::{Path, PathBuf};
use std::process::Command;

use tonnage::train::{Checkpoints, Position};
use tonnage::world::World;
use tonnage::{DType, Elementwise, RandomKey, Result, Tensor, Variable, zeros};

use crate::engine::moves_bytes;
use crate::{Folder, ended_well, is_rank, name, start_by};

const FOLDER: &str = "TONNAGE_TEST_FOLDER";

/// What is saved: large and small, of several dtypes, with fewer elements than ranks and with none.
fn values() -> Result<Vec<(&'static str, Tensor)>> {
    let normal = |key, shape: &[usize]| RandomKey::new(key).normal(shape.to_vec(), DType::F32);
    Ok(vec![
        ("kernel", normal(1, &[513, 514])?),
        ("half", normal(2, &[300, 200])?.cast(DType::BF16)?),
        ("steps", RandomKey::new(3).int(0, 1 << 40, vec![40_001], DType::I64)?),
        ("bias", normal(4, &[5])?),
        ("rate", normal(5, &[])?),
        ("none", zeros([0, 3])?),
    ])
}

/// Variables that are not written yet.
fn fresh() -> Result<Vec<(String, Variable)>> {
    let made = values()?.into_iter().map(|(name, value)| {
        let ty = value.ty();
        let start = tonnage::full(0, ty.dtype, ty.shape)?;
        Ok((name.to_string(), Variable::new(name, start)?))
    });
    made.collect()
}

fn is_saved(variables: &[(String, Variable)]) -> Result<bool> {
    for ((_, variable), (_, value)) in variables.iter().zip(values()?) {
        let bits = |tensor: Tensor| tensor.cast(DType::F64)?.to_vec::<f64>();
        let (own, saved) = (bits(variable.read()?)?, bits(value)?);
        if own.len() != saved.len()
            || own.iter().zip(&saved).any(|(a, b)| a.to_bits() != b.to_bits())
        {
            return Ok(false);
        }
    }
    Ok(true)
}

fn at(step: u64) -> Position {
    Position { step, epoch: 0, batch: step }
}

fn saves(world: &World, folder: &Path) -> Result<()> {
    let checkpoints = Checkpoints::new(folder).keep(2).across(world);
    let variables = fresh()?;
    tonnage::set_seed(11);
    for step in 1..5 {
        // The last one stays.
        if step == 4 {
            for ((_, variable), (_, value)) in variables.iter().zip(values()?) {
                variable.assign(&value)?;
            }
        }
        checkpoints.save(&variables, at(step))?;
        checkpoints.save(&variables, at(step))?; // the same step once more
    }
    Ok(())
}

fn restores(world: &World, folder: &Path) -> Result<()> {
    let checkpoints = Checkpoints::new(folder).across(world);
    let variables = fresh()?;
    assert_eq!(checkpoints.restore(&variables)?, Some(at(4)));
    assert!(is_saved(&variables)?);
    let whole: u64 = variables.iter().map(|(_, v)| v.ty().bytes("test").unwrap().get()).sum();
    let share = whole as f64 / world.size() as f64;
    let read = checkpoints.bytes_read().get() as f64;
    assert!(read <= 1.05 * share, "{read} of {share} bytes");
    // Once more, over values that are there: the same, and nothing of it depends on what was before.
    variables[0].1.assign(&zeros([513, 514])?)?;
    checkpoints.restore(&variables)?;
    assert!(is_saved(&variables)?);
    Ok(())
}

#[test]
fn a_checkpoint_of_four_ranks_restores_on_any_number() {
    let of_rank = |world: &World, program: &str| {
        let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
        match program {
            "save" => saves(world, &folder).unwrap(),
            _ => restores(world, &folder).unwrap(),
        }
        if world.size() == 1 {
            moves_bytes(world);
        }
    };
    if is_rank(of_rank) {
        return;
    }
    let (name, folder) = (name!(), Folder::new(name!()));
    let run = |program: &str, ranks: usize| {
        let made = start_by(name, program, ranks, &|command| {
            command.env(FOLDER, &folder.0);
        })?;
        Some(ended_well(&made, &format!("{program} on {ranks} ranks")))
    };
    if run("save", 4).is_none() {
        return;
    }
    let names = files(&folder.0);
    let parts = names.iter().filter(|name| name.ends_with("-of-00004.safetensors")).count();
    assert_eq!(parts, 2 * 4, "two checkpoints are kept: {names:?}");
    assert_eq!(names.len(), 2 * 4 + 2 + 1, "with their indexes and the record: {names:?}");
    for ranks in [1, 2, 3, 8] {
        run("restore", ranks);
    }
}

fn files(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).unwrap();
    all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// Rank 1 has no room left at its second save.
fn full(world: &World, folder: &Path) -> Result<()> {
    let (checkpoints, variables) = (Checkpoints::new(folder).across(world), fresh()?);
    for ((_, variable), (_, value)) in variables.iter().zip(values()?) {
        variable.assign(&value)?;
    }
    checkpoints.save(&variables, at(4))?;
    if world.rank() == 1 {
        let own = std::process::id().to_string();
        Command::new("prlimit").args(["--fsize=4096", "--pid", &own]).status().unwrap();
    }
    let error = checkpoints.save(&variables, at(5)).unwrap_err().to_string();
    assert_eq!(world.rank() != 1, error.contains("rank 1 cannot save"), "{error}");
    assert!(error.contains("make room on the disk"), "{error}");
    world.must(world.engine().barrier("test"));
    let left = files(folder);
    assert!(left.iter().all(|name| !name.contains("step-000000005")), "{left:?}");
    assert!(left.iter().all(|name| !name.ends_with(".part")), "{left:?}");
    restores(world, folder)
}

#[test]
fn a_full_disk_on_one_rank_is_an_error_of_all_and_the_checkpoint_before_stays() {
    let of_rank = |world: &World, _: &str| {
        full(world, &PathBuf::from(std::env::var(FOLDER).unwrap())).unwrap();
    };
    if is_rank(of_rank) {
        return;
    }
    let folder = Folder::new(name!());
    let made = start_by(name!(), "full", 3, &|command| {
        // The signal that comes with the limit is ignored, as programs that care do.
        let (program, args) = (command.get_program().to_owned(), command.get_args());
        let args: Vec<_> = args.map(ToOwned::to_owned).collect();
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(program).args(args);
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                shell.env(name, value);
            }
        }
        shell.env(FOLDER, &folder.0);
        *command = shell;
    });
    if let Some(made) = made {
        ended_well(&made, "a full disk");
    }
}

#[test]
fn a_damaged_part_is_an_error_of_all_ranks_and_nothing_has_changed() {
    let of_rank = |world: &World, _: &str| {
        let folder = PathBuf::from(std::env::var(FOLDER).unwrap());
        saves(world, &folder).unwrap();
        let variables = fresh().unwrap();
        if world.rank() == 1 {
            // In the last piece of the last rank's file: whoever reads it finds out.
            let last = format!("{:05}-of-{:05}.safetensors", world.size() - 1, world.size());
            let names = files(&folder);
            let is_last = |name: &&String| name.contains("step-000000004") && name.ends_with(&last);
            let path = folder.join(names.iter().filter(is_last).max().unwrap());
            let mut bytes = std::fs::read(&path).unwrap();
            let at = bytes.len() - 1;
            bytes[at] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
        world.must(world.engine().barrier("test"));
        let error = Checkpoints::new(&folder).across(world).restore(&variables).unwrap_err();
        assert!(error.to_string().contains("is not as it was saved"), "{error}");
        assert!(variables.iter().all(|(_, variable)| variable.read().unwrap().is_recipe()));
        println!("rank {} saw it", world.rank());
    };
    if is_rank(of_rank) {
        return;
    }
    let folder = Folder::new(name!());
    let made = start_by(name!(), "damage", 2, &|command| {
        command.env(FOLDER, &folder.0);
    });
    if let Some(made) = made {
        assert_eq!(ended_well(&made, "damage").matches("saw it").count(), 2);
    }
}
