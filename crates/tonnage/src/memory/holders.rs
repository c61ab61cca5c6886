//! Who is known to hold some bytes: variables, the tapes of this thread, functions and sessions. What the program holds by
//! handles of its own is what is left over, so those who ask count it.

use tonnage_core::Source;
use tonnage_runtime::storage::Storage;

use super::why::HeldBy;
use crate::function::captures;
use crate::scope;
use crate::tape;
use crate::variable::Variable;

/// Which bytes.
pub(super) enum BytesInQuestion<'a> {
    /// Those of one storage, by its address.
    Storage(usize),
    /// All that are from a line.
    Line(&'a dyn Fn(Source) -> bool),
}

impl BytesInQuestion<'_> {
    fn is(&self, address: usize, from: Option<Source>) -> bool {
        match self {
            BytesInQuestion::Storage(asked) => address == *asked,
            BytesInQuestion::Line(is_it) => from.is_some_and(is_it),
        }
    }

    fn is_of(&self, storage: &Storage) -> bool {
        self.is(address(storage), storage.owner().map(|owner| owner.source))
    }
}

fn address(storage: &Storage) -> usize {
    std::ptr::from_ref(storage) as usize
}

/// Who holds them, and for each handle that those have the address of what it holds.
pub(super) struct KnownHolders {
    pub held_by: Vec<HeldBy>,
    pub storages: Vec<usize>,
}

pub(super) fn known(asked: &BytesInQuestion<'_>) -> KnownHolders {
    let (mut held_by, mut storages) = (Vec::new(), Vec::new());
    for (variable, value) in Variable::holding(|value| asked.is_of(value.storage())) {
        held_by.push(HeldBy::Variable {
            name: variable.name().to_string(),
            made: variable.made(),
            within: scope::holders(&variable),
        });
        storages.push(address(value.storage()));
    }
    for (op, source, tensor) in tape::saved() {
        let Ok(array) = tensor.array("tape") else { continue };
        if asked.is_of(array.storage()) {
            held_by.push(HeldBy::Tape { op, source });
            storages.push(address(array.storage()));
        }
    }
    for (owner, held) in captures::holders(|held| asked.is(held.storage, held.from)) {
        held_by.push(HeldBy::Captured { what: owner.what, made: owner.source });
        storages.extend(held.iter().map(|held| held.storage));
    }
    KnownHolders { held_by, storages }
}
