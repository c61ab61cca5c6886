//! Devices by name: where the bytes of a tensor lie, and what runs the ops on them.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::error::{Error, ErrorKind};

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// The cores of this machine, with its memory.
    Cpu,
    /// A device for tests: memory that host code cannot dereference, and a queue that runs late.
    Sim,
    /// An NVIDIA GPU.
    Cuda,
}

impl DeviceKind {
    /// All of them.
    pub const ALL: [DeviceKind; 3] = [DeviceKind::Cpu, DeviceKind::Sim, DeviceKind::Cuda];

    /// What names begin with.
    pub const fn name(self) -> &'static str {
        match self {
            DeviceKind::Cpu => "cpu",
            DeviceKind::Sim => "sim",
            DeviceKind::Cuda => "cuda",
        }
    }
}

/// A device. Its name is what users write, in the short form or in TensorFlow's.
///
/// ```
/// use tonnage_core::{Device, DeviceKind};
/// let gpu: Device = "/GPU:1".parse()?;
/// assert_eq!(gpu, Device { kind: DeviceKind::Cuda, index: 1 });
/// assert_eq!(gpu.to_string(), "cuda:1");
/// assert_eq!("cpu".parse::<Device>()?, Device::CPU);
/// assert_eq!("/job:localhost/replica:0/task:0/device:CPU:0".parse::<Device>()?, Device::CPU);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// What it is.
    pub kind: DeviceKind,
    /// Which of them.
    pub index: u16,
}

impl Device {
    /// The CPU: `cpu:0`.
    pub const CPU: Device = Device { kind: DeviceKind::Cpu, index: 0 };
    /// The device for tests: `sim:0`.
    pub const SIM: Device = Device { kind: DeviceKind::Sim, index: 0 };

    /// The name that TensorFlow has for it: `/device:GPU:0`.
    pub fn tensorflow_name(self) -> String {
        let kind = match self.kind {
            DeviceKind::Cpu => "CPU",
            DeviceKind::Sim => "SIM",
            DeviceKind::Cuda => "GPU",
        };
        format!("/device:{kind}:{}", self.index)
    }

    /// The name that TensorFlow's tensors show: the same with the process, of which there is one.
    ///
    /// ```
    /// let name = tonnage_core::Device::CPU.full_name();
    /// assert_eq!(name, "/job:localhost/replica:0/task:0/device:CPU:0");
    /// ```
    pub fn full_name(self) -> String {
        format!("/job:localhost/replica:0/task:0{}", self.tensorflow_name())
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.name(), self.index)
    }
}

impl Serialize for Device {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl FromStr for Device {
    type Err = Error;

    fn from_str(name: &str) -> Result<Device, Error> {
        parse(name).ok_or_else(|| {
            let what = "this is no name of a device; use one like cpu:0, cuda:0 or /GPU:0".into();
            ErrorKind::NoDevice { name: name.into(), what }.into()
        })
    }
}

/// The device of a name in one of the usual forms.
fn parse(name: &str) -> Option<Device> {
    let lower = name.trim().to_ascii_lowercase();
    // A full name says which process first.
    let (process, last) = lower.rsplit_once('/').unwrap_or(("", &lower));
    let is_process = |part: &str| ["job:", "replica:", "task:"].iter().any(|p| part.starts_with(p));
    if !process.split('/').all(|part| part.is_empty() || is_process(part)) {
        return None;
    }
    let prefixes = ["device:", "physical_device:"];
    let plain = prefixes.iter().find_map(|prefix| last.strip_prefix(prefix)).unwrap_or(last);
    let (kind, index) = match plain.split_once(':') {
        Some((kind, index)) => (kind, index.parse().ok()?),
        None => (plain, 0),
    };
    let known = DeviceKind::ALL.into_iter().find(|known| known.name() == kind);
    let kind = known.or((kind == "gpu").then_some(DeviceKind::Cuda))?;
    Some(Device { kind, index })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_every_usual_form_and_written_in_one() {
        for kind in DeviceKind::ALL {
            for index in [0, 1, 65_535] {
                let device = Device { kind, index };
                let upper = device.to_string().to_uppercase();
                for name in [device.to_string(), upper.clone(), format!("/{upper}")] {
                    assert_eq!(name.parse::<Device>().unwrap(), device, "{name}");
                    assert_eq!(
                        format!("/device:{name}").parse::<Device>().is_ok(),
                        !name.contains('/')
                    );
                }
                let name = device.tensorflow_name();
                let physical = name.replace("/device", "/physical_device");
                for name in [name.clone(), device.full_name(), physical] {
                    assert_eq!(name.parse::<Device>().unwrap(), device, "{name}");
                }
            }
            for prefix in ["", "/", "/device:", "/physical_device:"] {
                let name = format!("{prefix}{}", kind.name());
                assert_eq!(name.parse::<Device>().unwrap(), Device { kind, index: 0 }, "{name}");
            }
        }
    }

    #[test]
    fn what_is_no_name_is_refused_with_one_that_is() {
        for name in [
            "",
            "tpu:0",
            "cpu:",
            "cpu:-1",
            "cpu:65536",
            "cpu:0:0",
            "0",
            "cpu 0",
            "gpu:x",
            "/device:/cpu:0",
        ] {
            let error = name.parse::<Device>().unwrap_err().to_string();
            assert!(error.contains(&format!("`{name}`")) && error.contains("cpu:0"), "{error}");
        }
    }
}
