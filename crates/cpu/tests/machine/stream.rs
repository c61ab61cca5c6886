//! Results that are written past the caches.

use tonnage_core::tile::{Prim, TileProgram};
use tonnage_core::{DType, Layout};
use tonnage_cpu::tile::{Read, TileSource, run};
use tonnage_cpu::workers::Alone;
use tonnage_simd::stream::streaming;

#[test]
fn every_byte_arrives_whatever_the_length_and_the_place() {
    let from: Vec<u8> = (1..=200).collect();
    for start in 0..40 {
        for len in 0..150 {
            let mut to = [0; 200];
            streaming(|stream| stream.copy(&mut to[start..start + len], &from[..len]));
            assert!(to[..start].iter().all(|x| *x == 0), "before {start}");
            assert_eq!(to[start..start + len], from[..len]);
            assert!(to[start + len..].iter().all(|x| *x == 0), "after {start} + {len}");
        }
    }
}

/// `x * x` in two dtypes, over more elements than a cache holds and a tail that is no whole tile.
#[test]
fn large_results_are_those_of_small_ones() {
    const COUNT: usize = (9 << 20) + 333;
    let x: Vec<f32> = (0..COUNT).map(|i| (i % 4099) as f32 / 64.0).collect();
    let mut program = TileProgram::loading(&[DType::F32]);
    let square = program.push(Prim::Mul, &[0, 0]);
    program.store(square, DType::F32);
    program.store(square, DType::BF16);
    let (mut wide, mut narrow) = (vec![0f32; COUNT], vec![0u16; COUNT]);
    let made = |x: &[f32], wide: &mut [f32], narrow: &mut [u16]| {
        let layout = Layout::contiguous([x.len()].as_slice());
        let source = TileSource {
            layout: std::borrow::Cow::Owned(layout),
            read: Read::Slice(bytemuck::cast_slice(x)),
        };
        let outputs = &mut [bytemuck::cast_slice_mut(wide), bytemuck::cast_slice_mut(narrow)];
        run(&program, &[x.len()], &[source], outputs, &mut [], &Alone).unwrap();
    };
    made(&x, &mut wide, &mut narrow);
    assert!(wide.iter().zip(&x).all(|(y, x)| *y == x * x));
    let piece = COUNT - 5000..COUNT;
    let (mut small, mut rounded) = (vec![0f32; 5000], vec![0u16; 5000]);
    made(&x[piece.clone()], &mut small, &mut rounded);
    assert_eq!(small, wide[piece.clone()]);
    assert_eq!(rounded, narrow[piece]);
}
