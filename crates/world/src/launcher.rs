//! Whether this process is a rank of a job: what launchers leave in the environment.

use std::env;

/// A variable that a launcher sets for each rank, and the one with the number of ranks where it says it.
const MARKS: [(&str, Option<&str>); 4] = [
    // Open MPI.
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    // MPICH, Intel MPI, and `srun --mpi=pmi2`.
    ("PMI_RANK", Some("PMI_SIZE")),
    // `srun --mpi=pmix`, and PRRTE.
    ("PMIX_RANK", None),
    // MVAPICH.
    ("MV2_COMM_WORLD_RANK", Some("MV2_COMM_WORLD_SIZE")),
];

/// `None` where nobody started this process as a rank; otherwise the number of ranks, where the launcher says it.
pub fn started() -> Option<Option<usize>> {
    started_by(|name| env::var(name).ok())
}

fn started_by(variable: impl Fn(&str) -> Option<String>) -> Option<Option<usize>> {
    let (_, size) = MARKS.into_iter().find(|(rank, _)| variable(rank).is_some())?;
    Some(size.and_then(&variable).and_then(|size| size.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rank_is_known_by_what_its_launcher_left() {
        for (given, expected) in [
            (vec![], None),
            (vec![("OMPI_COMM_WORLD_SIZE", "4")], None),
            (vec![("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4")], Some(Some(4))),
            (vec![("PMI_RANK", "1"), ("PMI_SIZE", "2")], Some(Some(2))),
            (vec![("PMI_RANK", "1")], Some(None)),
            (vec![("PMIX_RANK", "3")], Some(None)),
        ] {
            let variable = |name: &str| Some(given.iter().find(|(n, _)| *n == name)?.1.to_string());
            assert_eq!(started_by(variable), expected, "{given:?}");
        }
    }
}
