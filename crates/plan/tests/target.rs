//! Plans for devices that are not there: made, printed and compared where no such device is.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::layout::Layout;
use tonnage_core::row::Call;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Builder, Bytes, DType, Emit, Kind, OpDef, Scalar, TensorType};
use tonnage_cpu::CpuTarget;
use tonnage_ops::index::sort::SORT;
use tonnage_ops::linalg::matmul::MATMUL;
use tonnage_ops::math::{add::ADD, exp::EXP, tanh::TANH};
use tonnage_ops::shape::{reshape::RESHAPE, transpose::TRANSPOSE};
use tonnage_ops::tile::TileLimits;
use tonnage_plan::{
    DescribedTarget, InputSpec, Machine, Plan, PlanOptions, Run, SharedTarget, Space, Target,
    TileRun, lower, plan,
};

/// `tanh(exp(x @ w))`, as it runs on a device.
fn planned(target: SharedTarget) -> Plan {
    let ty = TensorType::new(DType::F32, [256, 256]);
    let mut builder = Builder::new();
    let x = builder.input(ty.clone(), Kind::Input, None);
    let w = builder.input(ty.clone(), Kind::Input, None);
    let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
    let y = builder.apply(&MATMUL, vec![x, w], attrs).unwrap();
    let y = builder.apply(&EXP, vec![y], Attrs::None).unwrap();
    let y = builder.apply(&TANH, vec![y], Attrs::None).unwrap();
    let graph = Arc::new(lower(&builder.finish(&[y]).unwrap(), &*target).unwrap());
    let spec = || InputSpec::contiguous(&ty, "test", false).unwrap();
    plan(&graph, &[spec(), spec()], PlanOptions::new(target)).unwrap()
}

/// A GPU as its data sheet has it: products take workspace of a fixed size, programs are short.
#[derive(Debug)]
struct Accelerator {
    workspace: Bytes,
    limits: TileLimits,
    sheet: DescribedTarget,
}

impl Target for Accelerator {
    fn name(&self) -> String {
        "an accelerator".to_string()
    }
    fn machine(&self) -> Machine {
        self.sheet.machine()
    }
    fn tile_limits(&self) -> TileLimits {
        self.limits
    }
    fn block(&self, bytes: Bytes) -> Bytes {
        self.sheet.block(bytes)
    }
    fn cuts_from(&self) -> Option<Bytes> {
        None
    }
    fn keeps_bits(&self, op: &OpDef, whole: &Call, piece: &Call) -> bool {
        self.sheet.keeps_bits(op, whole, piece)
    }

    fn scratch(&self, op: &OpDef, _: &Call, _: &[Option<&Layout>]) -> Bytes {
        if *op == MATMUL { self.workspace } else { Bytes::ZERO }
    }
    fn spill_space(&self) -> Space {
        Space::Host
    }
    fn host_scratch(&self, op: &OpDef, _: &Call, _: &[&Layout]) -> Option<Bytes> {
        (*op == SORT).then_some(Bytes::new(1000))
    }
    fn host_tile_scratch(&self, _: &TileRun) -> Option<Bytes> {
        None
    }
    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes {
        self.sheet.tile_scratch(program, domain)
    }
    fn streamed(&self, _: &OpDef, _: &Call, _: usize, _: &Layout) -> Option<usize> {
        None
    }
    fn takes_epilogue(&self, op: &OpDef, _: DType, _: &TileRun, _: &[usize]) -> bool {
        *op == MATMUL
    }
    fn lays_out(&self, op: &OpDef, _: &Call, _: usize) -> bool {
        *op == MATMUL
    }
    fn file_pieces(&self, bytes: Bytes) -> Bytes {
        bytes
    }
    fn rows_in_file(&self, _: &OpDef, _: &Attrs, _: usize, _: usize) -> Option<Bytes> {
        None
    }
    fn uniform(&self, _: &TileProgram, _: &[usize], _: &[Scalar]) -> Option<Scalar> {
        None
    }
}

fn accelerator(workspace: u64) -> Accelerator {
    let sheet = DescribedTarget::default();
    Accelerator { workspace: Bytes::new(workspace), limits: sheet.tile_limits, sheet }
}

#[test]
fn workspace_of_a_target_is_in_the_peak() {
    let bare = planned(Arc::new(DescribedTarget::default())).peak();
    let peak = |workspace: u64| planned(Arc::new(accelerator(workspace))).peak();
    assert_eq!(peak(0), bare);
    assert_eq!(peak(32 << 20), bare + Bytes::new(32 << 20));
    let cpu = CpuTarget::new(1, Machine::DEFAULT);
    let ty = TensorType::new(DType::F32, [256, 256]);
    let (types, attrs) =
        ([ty.clone(), ty], Attrs::Matmul { transpose_a: false, transpose_b: false });
    let scratch = cpu.scratch(&MATMUL, &Call::new(&MATMUL, &types, &attrs), &[]);
    assert_eq!(planned(Arc::new(cpu)).peak(), bare + scratch.rounded());
}

#[test]
fn arenas_are_whole_blocks_of_a_target() {
    let with = |block: u64| {
        let mut target = accelerator(100);
        target.sheet.block = Bytes::new(block);
        planned(Arc::new(target)).arena
    };
    let exact = with(64);
    assert!(exact > Bytes::ZERO && exact < Bytes::new(2 << 20), "{exact}");
    assert_eq!(with(2 << 20), Bytes::new(2 << 20));
    assert_eq!(with(1 << 12).get(), exact.get().next_multiple_of(1 << 12));
}

#[test]
fn a_target_says_whether_products_have_epilogues() {
    let joined = |target: SharedTarget| planned(target).steps.iter().any(|s| s.epilogue.is_some());
    assert!(joined(Arc::new(accelerator(0))));
    assert!(!joined(Arc::new(DescribedTarget::default())));
}

#[test]
fn what_several_read_is_made_by_the_kernel_before_it_where_that_can() {
    let planned = |target: SharedTarget| {
        let types = [&[64, 64][..], &[64, 64], &[64]].map(|n| TensorType::new(DType::F32, n));
        let mut builder = Builder::new();
        let [x, w, bias] = types.clone().map(|ty| builder.input(ty, Kind::Input, None));
        let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
        let y = builder.apply(&MATMUL, vec![x, w], attrs).unwrap();
        let y = builder.apply(&ADD, vec![y, bias], Attrs::None).unwrap();
        let both = [&EXP, &TANH].map(|op| builder.apply(op, vec![y.clone()], Attrs::None).unwrap());
        let graph = Arc::new(lower(&builder.finish(&both).unwrap(), &*target).unwrap());
        let specs = types.map(|ty| InputSpec::contiguous(&ty, "test", false).unwrap());
        plan(&graph, &specs, PlanOptions::new(target)).unwrap()
    };
    let taken_up = |plan: &Plan| plan.steps.iter().filter_map(|s| s.epilogue).count();
    let adds = |plan: &Plan| plan.graph.nodes.iter().filter(|node| *node.op == ADD).count();
    let alone = planned(Arc::new(DescribedTarget::default()));
    assert_eq!((adds(&alone), taken_up(&alone)), (0, 0), "{alone}");
    let with_product = planned(Arc::new(accelerator(0)));
    assert_eq!((adds(&with_product), taken_up(&with_product)), (1, 1), "{with_product}");
    assert_eq!(with_product.peak(), alone.peak());
}

/// A batch of products with its axes in that order, as one row for the first two of them.
fn planned_in_order(target: SharedTarget, order: [usize; 4]) -> Plan {
    let (left, right) = ([4, 8, 16, 16], [4, 8, 16, 32]);
    let sizes = order.map(|axis| [4, 8, 16, 32][axis]);
    let mut builder = Builder::new();
    let [x, w] = [left, right]
        .map(|sizes| builder.input(TensorType::new(DType::F32, sizes), Kind::Input, None));
    let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
    let y = builder.apply(&MATMUL, vec![x, w], attrs).unwrap();
    let order = Attrs::Order(order.as_slice().into());
    let y = builder.apply(&TRANSPOSE, vec![y], order).unwrap();
    let rows = Attrs::Shape([sizes[0] * sizes[1], sizes[2] * sizes[3]].into_iter().collect());
    let y = builder.apply(&RESHAPE, vec![y], rows).unwrap();
    let y = builder.apply(&SORT, vec![y], Attrs::Descending(false)).unwrap();
    let graph = Arc::new(lower(&builder.finish(&[y]).unwrap(), &*target).unwrap());
    let spec =
        |sizes| InputSpec::contiguous(&TensorType::new(DType::F32, sizes), "test", false).unwrap();
    plan(&graph, &[spec(left), spec(right)], PlanOptions::new(target)).unwrap()
}

#[test]
fn a_kernel_that_can_writes_in_the_order_in_which_its_result_is_read() {
    let copies = |plan: &Plan| plan.steps.iter().filter(|s| matches!(s.run, Run::Tile(_))).count();
    let strides = |plan: &Plan| {
        let calls = plan.steps.iter().filter_map(|step| match &step.run {
            Run::Kernel(call) => call.as_ref(),
            _ => None,
        });
        calls.flat_map(|call| &call.outputs).next().unwrap().strides.to_vec()
    };
    let result = Bytes::new(4 * 8 * 16 * 32 * 4);
    let plain = planned_in_order(Arc::new(DescribedTarget::default()), [0, 2, 1, 3]);
    assert_eq!((copies(&plain), strides(&plain)), (1, vec![4096, 512, 32, 1]));
    let in_order = planned_in_order(Arc::new(accelerator(0)), [0, 2, 1, 3]);
    assert_eq!((copies(&in_order), strides(&in_order)), (0, vec![4096, 32, 256, 1]));
    assert_eq!(in_order.peak() + result, plain.peak());
    let outer = planned_in_order(Arc::new(accelerator(0)), [2, 0, 1, 3]);
    assert_eq!((copies(&outer), strides(&outer)), (0, vec![256, 32, 1024, 1]));
    // Elements of a row lie side by side; what is read in order is left alone.
    for order in [[0, 1, 3, 2], [0, 1, 2, 3]] {
        assert_eq!(strides(&planned_in_order(Arc::new(accelerator(0)), order)), [4096, 512, 32, 1]);
    }
}

#[test]
fn plans_say_what_they_are_for() {
    assert_eq!(planned(Arc::new(accelerator(0))).target.name(), "an accelerator");
    assert_eq!(
        planned(Arc::new(CpuTarget::new(2, Machine::DEFAULT))).target.name(),
        "cpu, 2 threads"
    );
    let printed = planned(Arc::new(accelerator(4096))).to_string();
    assert!(printed.contains("matmul"), "{printed}");
}

#[test]
fn programs_are_as_long_as_a_target_runs_them() {
    let chain = |limits: TileLimits| {
        let target = Accelerator { limits, ..accelerator(0) };
        let ty = TensorType::new(DType::F32, [64]);
        let mut builder = Builder::new();
        let x = builder.input(ty.clone(), Kind::Input, None);
        // Forty values that are all alive until they are added up from the last to the first.
        let mut values = vec![x];
        for i in 0..40 {
            let op = if i % 2 == 0 { &TANH } else { &EXP };
            let last = values[values.len() - 1].clone();
            values.push(builder.apply(op, vec![last], Attrs::None).unwrap());
        }
        let mut sum = values.pop().unwrap();
        for value in values.into_iter().rev() {
            let both = vec![sum, value];
            sum = builder.apply(&ADD, both, Attrs::None).unwrap();
        }
        lower(&builder.finish(&[sum]).unwrap(), &target).unwrap().nodes.len()
    };
    let of = |live: usize| chain(TileLimits { registers: 128, stores: 4, live });
    assert!(of(8) > of(64), "{} nodes within 8 registers, {} within 64", of(8), of(64));
}
