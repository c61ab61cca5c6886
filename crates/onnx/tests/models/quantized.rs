//! Products of bytes: the numbers of plain loops, whatever the signs, the zero points and the windows.

use tonnage::{Tensor, tensor};
use tonnage_onnx::load;

use crate::write::{Folder, Message, bytes, floats, graph, int, int_list, model, node, value};

/// Bytes of all sizes.
fn numbers(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|n| ((n * 89 + seed * 53) % 256) as u8).collect()
}

fn wide(x: u8, signed: bool) -> i64 {
    if signed { i64::from(x as i8) } else { i64::from(x) }
}

/// A tensor of bytes of a sign.
fn given(signed: bool, values: &[u8], sizes: &[usize]) -> Tensor {
    match signed {
        true => tensor(values.iter().map(|n| *n as i8).collect::<Vec<i8>>()).unwrap(),
        false => tensor(values.to_vec()).unwrap(),
    }
    .reshape(sizes)
    .unwrap()
}

fn called(graph: &Message, inputs: Vec<Tensor>) -> Vec<i32> {
    let folder = Folder::new();
    let model = load(folder.put("model.onnx", &model(graph).0)).unwrap();
    model.call(inputs).unwrap().remove(0).tensor().unwrap().to_vec::<i32>().unwrap()
}

#[test]
fn a_product_of_bytes_is_exact_for_both_signs_with_zero_points_for_rows_and_columns() {
    const ROWS: usize = 3;
    const DEEP: usize = 300;
    const COLS: usize = 5;
    for (left, right) in [(false, true), (false, false), (true, true), (true, false)] {
        for per_line in [false, true] {
            let (a, b) = (numbers(ROWS * DEEP, 1), numbers(DEEP * COLS, 2));
            let (a_zeros, b_zeros) = match per_line {
                false => (vec![130], vec![3]),
                true => (numbers(ROWS, 3), numbers(COLS, 4)),
            };
            let zero = |name: &str, signed: bool, zeros: &[u8]| match per_line {
                true => bytes(name, signed, &[zeros.len() as i64], zeros),
                false => bytes(name, signed, &[], zeros),
            };
            let inputs = ["a", "b", "a_zero", "b_zero"];
            let graph = graph(
                &[node("MatMulInteger", &inputs, &["y"], &[])],
                &[
                    bytes("b", right, &[DEEP as i64, COLS as i64], &b),
                    zero("a_zero", left, &a_zeros),
                    zero("b_zero", right, &b_zeros),
                ],
                &[value("a", if left { 3 } else { 2 }, &["n", "300"])],
                &[value("y", 6, &["n", "5"])],
            );
            let made = called(&graph, vec![given(left, &a, &[ROWS, DEEP])]);
            for (i, made) in made.iter().enumerate() {
                let (row, col) = (i / COLS, i % COLS);
                let a_zero = wide(a_zeros[if per_line { row } else { 0 }], left);
                let b_zero = wide(b_zeros[if per_line { col } else { 0 }], right);
                let products = (0..DEEP).map(|k| {
                    (wide(a[row * DEEP + k], left) - a_zero)
                        * (wide(b[k * COLS + col], right) - b_zero)
                });
                assert_eq!(
                    i64::from(*made),
                    products.sum::<i64>(),
                    "{left} {right} {per_line} {i}"
                );
            }
        }
    }
}

#[test]
fn a_convolution_of_bytes_is_exact_with_groups_strides_and_a_zero_point_outside() {
    const SIDE: usize = 5;
    let (channels, outputs, groups) = (4usize, 6usize, 2usize);
    let (x, w) = (numbers(channels * SIDE * SIDE, 5), numbers(outputs * channels / groups * 9, 6));
    let filter_zeros = numbers(outputs, 7);
    // The zero point of the image is a constant, or comes with the call.
    for from_call in [false, true] {
        let attributes = [
            int("group", groups as i64),
            int_list("pads", &[1, 0, 1, 2]),
            int_list("strides", &[2, 1]),
        ];
        let inputs = ["x", "w", "x_zero", "w_zero"];
        let mut weights = vec![
            bytes("w", true, &[outputs as i64, (channels / groups) as i64, 3, 3], &w),
            bytes("w_zero", true, &[outputs as i64], &filter_zeros),
        ];
        let mut ports = vec![value("x", 2, &["1", "4", "5", "5"])];
        let mut tensors = vec![given(false, &x, &[1, channels, SIDE, SIDE])];
        match from_call {
            false => weights.push(bytes("x_zero", false, &[], &[7])),
            true => {
                ports.push(value("x_zero", 2, &[]));
                tensors.push(given(false, &[7], &[]));
            }
        }
        let graph = graph(
            &[node("ConvInteger", &inputs, &["y"], &attributes)],
            &weights,
            &ports,
            &[value("y", 6, &["1", "6", "3", "5"])],
        );
        let made = called(&graph, tensors);
        let (rows, columns) = (3, 5);
        assert_eq!(made.len(), outputs * rows * columns);
        for (i, made) in made.iter().enumerate() {
            let (output, row, column) = (i / rows / columns, i / columns % rows, i % columns);
            let group = output / (outputs / groups);
            let mut sum = 0;
            for channel in 0..channels / groups {
                for tap in 0..9 {
                    let (y, z) = ((2 * row + tap / 3) as isize - 1, (column + tap % 3) as isize);
                    let inside = |n: isize| (0..SIDE as isize).contains(&n);
                    let at = (group * channels / groups + channel) * SIDE * SIDE;
                    let pixel = match inside(y) && inside(z) {
                        true => wide(x[at + y as usize * SIDE + z as usize], false) - 7,
                        false => 0,
                    };
                    let weight = wide(w[(output * channels / groups + channel) * 9 + tap], true)
                        - wide(filter_zeros[output], true);
                    sum += pixel * weight;
                }
            }
            assert_eq!(i64::from(*made), sum, "{from_call} {i}");
        }
    }
}

#[test]
fn rows_of_a_table_of_bytes_are_computed_and_not_the_table() {
    const ROWS: usize = 8192;
    const WIDE: usize = 64;
    let table = numbers(ROWS * WIDE, 8);
    let scales: Vec<f32> = (0..ROWS).map(|n| (n % 13) as f32 / 8.0).collect();
    let graph = graph(
        &[
            node("Cast", &["table"], &["wide"], &[int("to", 1)]),
            node("Mul", &["wide", "scales"], &["scaled"], &[]),
            node("Add", &["scaled", "more"], &["whole"], &[]),
            node("Gather", &["whole", "places"], &["y"], &[int("axis", 0)]),
        ],
        &[
            bytes("table", true, &[ROWS as i64, WIDE as i64], &table),
            floats("scales", &[ROWS as i64, 1], &scales),
            floats("more", &[1, WIDE as i64], &[0.5; WIDE]),
        ],
        &[value("places", 7, &["a", "b"])],
        &[value("y", 1, &["a", "b", "64"])],
    );
    let folder = Folder::new();
    let model = load(folder.put("model.onnx", &model(&graph).0)).unwrap();
    let places = [3i64, -1, 0, 4000, 8191, 3];
    let given = tensor(places).unwrap().reshape([2, 3]).unwrap();
    // The bytes and their scales, and no floats beside them: those would be four times as much.
    let plan = model.plan(std::slice::from_ref(&given)).unwrap();
    assert!(plan.peak().get() < 2 * (ROWS * WIDE) as u64, "{plan}");
    let made = model.call([given]).unwrap().remove(0).tensor().unwrap();
    assert_eq!(made.shape().to_string(), "[2, 3, 64]");
    for (i, made) in made.to_vec::<f32>().unwrap().iter().enumerate() {
        let row = places[i / WIDE].rem_euclid(ROWS as i64) as usize;
        let byte = wide(table[row * WIDE + i % WIDE], true) as f32;
        assert_eq!(*made, byte * scales[row] + 0.5, "{i}");
    }
}
