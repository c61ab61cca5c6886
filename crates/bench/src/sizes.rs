//! The dimensions of a workload, by name.

/// Lengths by name: those that the workload has, some of them changed.
#[derive(Clone)]
pub struct WorkloadSizes(Vec<(&'static str, usize)>);

impl WorkloadSizes {
    /// As the workload has them.
    pub fn of(all: &[(&'static str, usize)]) -> WorkloadSizes {
        WorkloadSizes(all.to_vec())
    }

    /// A length. Workloads ask for names that they declare themselves; another would be a length of 0.
    pub fn get(&self, name: &str) -> usize {
        self.0.iter().find(|(known, _)| *known == name).map_or(0, |(_, length)| *length)
    }

    /// The same, as floating-point numbers for products that may be large.
    pub fn float(&self, name: &str) -> f64 {
        self.get(name) as f64
    }

    /// Changes a length; `None` where there is no such dimension.
    pub fn set(&mut self, name: &str, length: usize) -> Option<()> {
        let found = self.0.iter_mut().find(|(known, _)| *known == name)?;
        found.1 = length;
        Some(())
    }

    /// A small case of the same workload, which loads all code that it runs.
    pub fn tiny(&self) -> WorkloadSizes {
        WorkloadSizes(self.0.iter().map(|(name, length)| (*name, (*length).min(8))).collect())
    }
}
