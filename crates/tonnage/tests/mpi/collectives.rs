//! Ops between ranks: sums have the bits of a loop over the ranks, whatever the dtype and the length; gradients are those of the sum of all ranks' losses; a
//! plan knows the bucket.

use tonnage::world::World;
use tonnage::{
    Bytes, DType, GradientTape, Native, Result, Tensor, Variable, bf16, f16, function, memory,
    tensor,
};

use crate::engine::moves_bytes;
use crate::{counts, name, on_ranks};

#[test]
fn soak_sums_have_the_bits_of_a_loop_over_the_ranks_and_a_plan_knows_their_bucket() {
    on_ranks(name!(), counts(), |world| {
        moves_bytes(world);
        sums(world).unwrap();
        // What does not depend on how many ranks there are. A job takes a second to start.
        if world.size() == 3 {
            [moves, gradients, plans, mistakes].iter().for_each(|run| run(world).unwrap());
        }
    });
}

/// A number of a rank, of many sizes, so that the order of additions shows.
fn number(rank: usize, i: usize) -> f64 {
    const SIZES: [f64; 7] = [1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0, 1e3];
    let mixed = (i as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ ((rank as u64 + 1) << 17));
    ((mixed >> 40) as f64 / 16_777_216.0 - 0.5) * SIZES[i % 7]
}

/// Lengths around the ranks, around what is sent at once, and of 4 bytes around a bucket of 4 MiB.
fn lengths(ranks: usize, size: usize) -> Vec<usize> {
    let (small, bucket) = ((64 << 10) / size / ranks, (4 << 20) / size);
    let bucket = if size == 4 { bucket + ranks - 1 } else { 997 };
    vec![0, 1, ranks - 1, ranks, ranks + 1, 999, small, small + 1, bucket]
}

/// Sums of one dtype beside a loop over the ranks: first value, then each addition.
fn check_sums<T: Native + PartialEq + std::fmt::Debug + Copy>(
    world: &World,
    of: impl Fn(f64) -> T,
    zero: T,
    add: impl Fn(T, T) -> T,
) -> Result<()>
where
    Vec<T>: tonnage::Nested,
{
    let ranks = world.size();
    for length in lengths(ranks, size_of::<T>()) {
        let values = |rank: usize| (0..length).map(|i| of(number(rank, i))).collect::<Vec<T>>();
        let expected: Vec<T> = (0..length)
            .map(|i| (0..ranks).fold(zero, |sum, rank| add(sum, of(number(rank, i)))))
            .collect();
        let own = tensor(values(world.rank()))?;
        let sum = own.all_reduce(world)?.to_vec::<T>()?;
        assert_eq!(sum, expected, "all_reduce of {length}");
        assert_eq!(own.to_vec::<T>()?, values(world.rank()), "what was given");
        let to_last = own.reduce_to(world, ranks - 1)?.to_vec::<T>()?;
        let expected_there = match world.rank() == ranks - 1 {
            true => expected.clone(),
            false => vec![zero; length],
        };
        assert_eq!(to_last, expected_there, "reduce_to of {length}");
        if length.is_multiple_of(ranks) {
            let block = length / ranks;
            let own = own.reduce_scatter(world)?.to_vec::<T>()?;
            assert_eq!(
                own,
                expected[world.rank() * block..][..block],
                "reduce_scatter of {length}"
            );
        }
    }
    Ok(())
}

fn sums(world: &World) -> Result<()> {
    check_sums(world, |x| x as f32, 0.0, |a, b| a + b)?;
    check_sums(world, |x| x, 0.0, |a, b| a + b)?;
    check_sums(world, f16::from_f64, f16::ZERO, |a, b| f16::from_f32(a.to_f32() + b.to_f32()))?;
    check_sums(world, bf16::from_f64, bf16::ZERO, |a, b| bf16::from_f32(a.to_f32() + b.to_f32()))?;
    check_sums(world, |x| (x * 1e6) as i64, 0, i64::wrapping_add)?;
    check_sums(world, |x| (x * 1e4) as i16, 0, i16::wrapping_add)?;
    check_sums(world, |x| (x * 1e6) as i64 as u8, 0, u8::wrapping_add)?;
    // Columns of a matrix, in any layout.
    let rows = 2 * world.size();
    let matrix = |rank: usize| (0..rows * 3).map(|i| number(rank, i) as f32).collect::<Vec<_>>();
    let own = tensor(matrix(world.rank()))?.reshape([3, rows as i64])?.transpose(&[1, 0])?;
    let at = |rank: usize, i: usize| matrix(rank)[(i % 3) * rows + i / 3];
    let sum = |i: usize| (0..world.size()).fold(0.0, |sum, rank| sum + at(rank, i));
    let expected: Vec<f32> = (0..rows * 3).map(sum).collect();
    assert_eq!(own.all_reduce(world)?.to_vec::<f32>()?, expected);
    let block = own.reduce_scatter(world)?.to_vec::<f32>()?;
    assert_eq!(block, expected[world.rank() * 6..][..6]);
    Ok(())
}

fn moves(world: &World) -> Result<()> {
    let (rank, ranks) = (world.rank(), world.size());
    for length in [0, 1, 5, 100_000] {
        let values = |rank: usize| (0..length).map(|i| number(rank, i) as f32).collect::<Vec<_>>();
        let own = tensor(values(rank))?;
        let all: Vec<f32> = (0..ranks).flat_map(values).collect();
        assert_eq!(own.all_gather(world)?.to_vec::<f32>()?, all, "all_gather of {length}");
        for root in 0..ranks {
            let sent = own.broadcast(world, root)?.to_vec::<f32>()?;
            assert_eq!(sent, values(root), "broadcast of {length} from {root}");
        }
    }
    let flags = tensor(vec![rank == 0, true])?.all_gather(world)?;
    let expected: Vec<bool> = (0..ranks).flat_map(|rank| [rank == 0, true]).collect();
    assert_eq!((flags.dtype(), flags.to_vec::<bool>()?), (DType::Bool, expected));
    Ok(())
}

/// The weight that a rank has for an element of a result: what comes back is made of these.
fn weight(rank: usize, i: usize) -> f32 {
    (rank * 10 + i + 1) as f32
}

fn gradients(world: &World) -> Result<()> {
    let (rank, ranks) = (world.rank(), world.size());
    let check = |op: &dyn Fn(&Tensor) -> Result<Tensor>, expected: &dyn Fn(usize) -> f32| {
        let x = tensor((0..ranks).map(|i| i as f32).collect::<Vec<_>>())?;
        let own = |x: &Tensor| -> Result<(Tensor, Tensor)> {
            let mut tape = GradientTape::new();
            tape.watch(x);
            let y = op(x)?;
            let count = y.shape().sizes().map_or(0, |sizes| sizes[0]);
            let weights = tensor((0..count).map(|i| weight(rank, i)).collect::<Vec<_>>())?;
            let loss = y.mul(&weights)?.sum_all()?;
            let [gradient] = tape.gradient(&loss, &[x])?;
            Ok((loss, gradient.tensor()?))
        };
        let (_, gradient) = own(&x)?;
        let expected: Vec<f32> = (0..ranks).map(expected).collect();
        assert_eq!(gradient.to_vec::<f32>()?, expected);
        // A function gives the same.
        let planned = function(|x: Tensor| own(&x));
        assert_eq!(planned.call(x)?.1.to_vec::<f32>()?, expected);
        Ok::<(), tonnage::Error>(())
    };
    let of_all = |i: usize| (0..ranks).map(|rank| weight(rank, i)).sum::<f32>();
    check(&|x| x.all_reduce(world), &of_all)?;
    check(&|x| x.all_gather(world), &|i| of_all(rank * ranks + i))?;
    check(&|x| x.reduce_scatter(world), &|i| weight(i, 0))?;
    check(&|x| x.broadcast(world, 1), &|i| if rank == 1 { of_all(i) } else { 0.0 })?;
    check(&|x| x.reduce_to(world, 1), &|i| weight(1, i))
}

fn plans(world: &World) -> Result<()> {
    let length = 3 << 20;
    let bytes = Bytes::of(length * 4);
    let bucket = Bytes::of((4 << 20) / 4 / world.size() * world.size() * 4);
    let sum = Variable::new("sum", tonnage::zeros([length])?)?;
    let step = function(|x: Tensor| {
        let y = x.add(1.0)?.all_reduce(world)?;
        sum.assign(&y)
    });
    let x = tonnage::ones([length])?;
    let plan = step.plan(&x)?;
    // The variable, the sum in its place, and the bucket; the argument is a recipe.
    let peak = plan.peak();
    assert!(peak >= bytes + bucket && peak <= bytes + bytes + bucket.rounded(), "{plan}");
    let names: Vec<&str> = plan.graph.nodes.iter().map(|node| node.op.name).collect();
    assert_eq!(names.iter().filter(|name| **name == "all_reduce").count(), 1, "{names:?}");
    let (_, measured) = step.call_measured(x)?;
    assert_eq!(measured.map(|m| m.used), Some(peak));
    let expected = 2.0 * world.size() as f32;
    assert!(sum.read()?.to_vec::<f32>()?.iter().all(|x| *x == expected));
    assert!(memory::info("cpu:0")?.peak >= bytes);
    // One that nobody reads still runs, since the others wait for it.
    let unread = function(|x: Tensor| {
        x.all_reduce(world)?;
        x.add(1.0)
    });
    let plan = unread.plan(&tensor([1.0f32])?)?;
    assert!(plan.graph.nodes.iter().any(|node| node.op.name == "all_reduce"), "{plan}");
    Ok(())
}

fn mistakes(world: &World) -> Result<()> {
    let (x, ranks) = (tonnage::ones([world.size() + 1])?, world.size());
    let says = |made: Result<Tensor>, part: &str| {
        let error = made.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    says(x.reduce_scatter(world), &format!("an axis of {} has no {ranks} blocks", ranks + 1));
    says(x.broadcast(world, ranks), &format!("rank {ranks} of a world of {ranks} ranks"));
    says(tensor(1.0f32)?.all_gather(world), "rank 0");
    says(tensor([true])?.all_reduce(world), "bool");
    world.engine().barrier("test")
}
