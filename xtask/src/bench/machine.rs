//! What is measured on: the machine, what it can do at best, and how busy it is.

use std::fmt;
use std::fs;
use std::thread;

use super::TURNS;
use super::runs::named;

/// The machine, as every table states it.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// What its processor is called.
    pub processor: String,
    /// Threads that it runs side by side.
    pub cores: f64,
    /// How many threads ran or waited, on average over the last minute.
    pub load: f64,
    /// Operations in a second, of a product.
    pub flops: f64,
    /// Bytes in a second, of a copy.
    pub bytes: f64,
}

impl Machine {
    /// What `limits` prints is asked for some times: the best counts.
    pub fn measured(limits: impl Fn() -> Result<String, String>) -> Result<Machine, String> {
        let load = load();
        let all = (0..TURNS).map(|_| Ok(named(&limits()?)));
        let all = all.collect::<Result<Vec<_>, String>>()?;
        let most =
            |name: &str| all.iter().filter_map(|of| of.get(name)).fold(0.0, |a: f64, b| a.max(*b));
        Ok(Machine {
            processor: processor(),
            cores: thread::available_parallelism().map_or(1.0, |cores| cores.get() as f64),
            load,
            flops: most("flops"),
            bytes: most("bytes"),
        })
    }

    /// The same with the load of now.
    pub fn now(&self) -> Machine {
        Machine { load: load(), ..self.clone() }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { processor, cores, load, flops, bytes } = self;
        write!(
            f,
            "machine: {processor}, {cores} cores, load {load:.2}; at best {:.1} GFLOP/s in a product, {:.1} GB/s in a copy",
            flops / 1e9,
            bytes / 1e9
        )
    }
}

/// The system's average over the last minute; 0 where it does not say.
fn load() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0)
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = line.map(|rest| rest.trim_start_matches([' ', '\t', ':']).trim().to_string());
    name.unwrap_or_else(|| std::env::consts::ARCH.to_string())
}
