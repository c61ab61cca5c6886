//! Assertions: a kernel that looks at a count.

use std::sync::Arc;

use tonnage_core::{Attrs, DType, ErrorKind, HostCall, Layout};
use tonnage_cuda::driver::Status;
use tonnage_cuda::emit::{self, Launch, OpCall, Operand};
use tonnage_ops::host::assertion::ASSERTION;

use crate::Trial;
use crate::draw::Buffer;

/// An assertion of one count, in the middle of other numbers.
struct AssertionCase {
    numbers: Buffer,
    wrong: i64,
}

/// The number of all.
const ALL: i64 = 1000;

impl AssertionCase {
    fn new(wrong: i64) -> AssertionCase {
        let mut numbers = Buffer::new(4 * size_of::<i64>());
        for (to, number) in numbers.bytes_mut().chunks_mut(size_of::<i64>()).zip([7, wrong, ALL, 7])
        {
            to.copy_from_slice(&number.to_le_bytes());
        }
        AssertionCase { numbers, wrong }
    }
}

impl Trial for AssertionCase {
    fn launch(&self) -> Option<Launch> {
        let call = HostCall::assertion("looks", |_, _| ErrorKind::Interrupted.into());
        let call = Arc::new(call);
        let attrs = Attrs::Host { call, results: Vec::new() };
        let address = self.numbers.bytes().as_ptr().expose_provenance() as u64;
        let lies = [1, 2].map(|offset| Layout { offset, ..Layout::contiguous(&[][..]) });
        let operands = lies.each_ref().map(|lies| (Operand::Memory(address, lies), DType::I64));
        let op = &ASSERTION;
        assert!(emit::has_kernel(op, &attrs, DType::I64, |_| None));
        let (sizes, lies, outputs, scratch) = (&[][..], &[][..], &[][..], None);
        let (attrs, operands, shared) = (&attrs, &operands[..], emit::LEAST_SHARED);
        let (added, capability) = (None, (8, 0));
        let call = OpCall {
            op,
            attrs,
            operands,
            sizes,
            lies,
            outputs,
            added,
            scratch,
            shared,
            capability,
        };
        emit::launch_op(&call).unwrap()
    }

    fn check(&self, status: &Status) -> Result<(), String> {
        let said = (status.launch > 0).then_some((status.index, status.position as i64));
        let wanted = (self.wrong != 0).then_some((self.wrong, ALL));
        (said == wanted)
            .then_some(())
            .ok_or_else(|| format!("an assertion: {said:?}, not {wanted:?}"))
    }
}

/// All cases.
pub fn cases(all: &mut Vec<Box<dyn Trial>>) {
    for wrong in [0, 3, -1, (2 << 31) + 1] {
        all.push(Box::new(AssertionCase::new(wrong)));
    }
}
