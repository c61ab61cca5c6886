//! Which ops a suite is run for.

use tonnage_core::row::OpDef;
use tonnage_ops::TABLE;

/// The ops that are checked: all of the table, or those that the environment variable `TONNAGE_OPS` names, separated by commas,
/// for whoever works on one.
pub fn ops() -> Vec<&'static OpDef> {
    let Ok(names) = std::env::var("TONNAGE_OPS") else { return TABLE.to_vec() };
    let find = |name: &str| {
        let found = TABLE.iter().find(|op| op.name == name);
        *found.unwrap_or_else(|| panic!("TONNAGE_OPS names {name}, and there is no such op"))
    };
    names.split(',').map(|name| find(name.trim())).collect()
}

/// Whether no op is left out, so that tests may say how much there is to check.
pub fn are_all() -> bool {
    std::env::var_os("TONNAGE_OPS").is_none()
}
