//! Loads that repeat, an operand for each channel: what one tile has brought the next need not bring.

use std::borrow::Cow;

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::DType;
use tonnage_core::layout::Layout;
use tonnage_core::tile::{Prim, Reduction, TileProgram};
use tonnage_cpu::tile::{Read, TileSource, run, scratch};
use tonnage_cpu::workers::Alone;

/// Runs a program over `[rows, 2, width]` elements, numbers for each channel, and others for each of the last two axes.
fn ran(
    program: &TileProgram,
    sizes: [usize; 3],
    operands: [&[f32]; 3],
    results: usize,
) -> Vec<f32> {
    let [_, _, width] = sizes.map(|n| n as isize);
    let strides = [[2 * width, width, 1], [0, 0, 1], [0, width, 1]];
    let sources: Vec<TileSource> = operands
        .iter()
        .zip(&strides)
        .map(|(values, strides)| TileSource {
            layout: Cow::Owned(Layout {
                offset: 0,
                sizes: sizes.as_slice().into(),
                strides: strides.as_slice().into(),
            }),
            read: Read::Slice(cast_slice(values)),
        })
        .collect();
    let mut made = vec![0f32; results];
    let mut room = vec![0u64; scratch(program, &sizes).as_usize() / 8];
    let room = cast_slice_mut(&mut room);
    run(program, &sizes, &sources, &mut [cast_slice_mut(&mut made)], room, &Alone).unwrap();
    made
}

fn numbers(count: usize, step: f32) -> Vec<f32> {
    (0..count).map(|i| (i as f32 * step).sin()).collect()
}

#[test]
fn operands_for_each_channel_are_those_of_every_row_whatever_the_width() {
    // Widths that fit a tile several times, with and without a rest, once, and not at all.
    for width in [3, 16, 32, 37, 64, 300, 1024, 1500] {
        let rows = 4 + 4000 / width;
        let sizes = [rows, 2, width];
        let (x, by, more) =
            (numbers(rows * 2 * width, 0.7), numbers(width, 0.3), numbers(2 * width, 1.1));
        let value = |i: usize| (x[i] - by[i % width]) * more[i % (2 * width)] + by[i % width];

        let mut program = TileProgram::loading(&[DType::F32; 3]);
        let from = program.push(Prim::Sub, &[0, 1]);
        let product = program.push(Prim::Mul, &[from, 2]);
        let sum = program.push(Prim::Add, &[product, 1]);
        program.store(sum, DType::F32);
        let made = ran(&program, sizes, [&x, &by, &more], x.len());
        assert!(made.iter().enumerate().all(|(i, y)| y.to_bits() == value(i).to_bits()), "{width}");

        program.reduce(Reduction::Sum, &[0, 1]);
        let made = ran(&program, sizes, [&x, &by, &more], width);
        for (channel, found) in made.iter().enumerate() {
            let own = (channel..x.len()).step_by(width).map(|i| f64::from(value(i)));
            assert_eq!(*found, own.sum::<f64>() as f32, "{channel} of {width}");
        }
    }
}
