//! Images: what convolutions and what is between them give, and that nothing is transposed on the way.

use tonnage::tensor;
use tonnage_onnx::load;

use crate::write::{Folder, Message, floats, graph, int, int_list, ints, model, node, value};

/// Numbers of both signs that repeat late.
fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|n| ((n * 37 + seed * 11) % 101) as f32 / 50.0 - 1.0).collect()
}

/// An image `[1, channels, rows, columns]` as plain loops see it.
#[derive(Clone)]
struct Image {
    channels: usize,
    side: usize,
    values: Vec<f64>,
}

impl Image {
    fn at(&self, channel: usize, row: isize, column: isize) -> f64 {
        let inside = |n: isize| (0..self.side as isize).contains(&n);
        if !inside(row) || !inside(column) {
            return 0.0;
        }
        self.values[(channel * self.side + row as usize) * self.side + column as usize]
    }

    fn map(self, f: impl Fn(usize, f64) -> f64) -> Image {
        let pixels = self.side * self.side;
        let values = self.values.iter().enumerate().map(|(i, x)| f(i / pixels, *x)).collect();
        Image { values, ..self }
    }

    /// With filters of 3 by 3 and a border of zeros.
    fn convolved(&self, weights: &[f32], outputs: usize) -> Image {
        let mut values = Vec::new();
        for output in 0..outputs {
            for row in 0..self.side as isize {
                for column in 0..self.side as isize {
                    let mut sum = 0.0;
                    for channel in 0..self.channels {
                        for tap in 0..9 {
                            let weight = weights[(output * self.channels + channel) * 9 + tap];
                            let (y, x) = (tap as isize / 3 - 1, tap as isize % 3 - 1);
                            sum += f64::from(weight) * self.at(channel, row + y, column + x);
                        }
                    }
                    values.push(sum);
                }
            }
        }
        Image { channels: outputs, side: self.side, values }
    }

    fn joined(&self, other: &Image) -> Image {
        let values = self.values.iter().chain(&other.values).copied().collect();
        Image { channels: self.channels + other.channels, side: self.side, values }
    }

    /// Each pixel four times.
    fn doubled(&self) -> Image {
        let side = 2 * self.side;
        let place =
            |i: usize| (i / side / side, (i / side % side / 2) as isize, (i % side / 2) as isize);
        let all = (0..self.channels * side * side).map(place);
        let values = all.map(|(channel, row, column)| self.at(channel, row, column)).collect();
        Image { channels: self.channels, side, values }
    }
}

#[test]
fn what_is_between_convolutions_keeps_the_order_of_the_image() {
    const SIDE: usize = 6;
    let folder = Folder::new();
    let (first, second, third) =
        (numbers(5 * 3 * 9, 1), numbers(5 * 5 * 9, 2), numbers(2 * 11 * 9, 3));
    let (bias, scale, slope) = (numbers(5, 4), numbers(5, 5), numbers(5, 6));
    let (mean, variance) = (numbers(5, 7), vec![0.5f32, 1.0, 2.0, 0.25, 4.0]);
    let around = int_list("pads", &[1, 1, 1, 1]);
    let conv = |inputs: &[&str], output: &str| {
        node("Conv", inputs, &[output], std::slice::from_ref(&around))
    };
    let mode = Message::default().text(1, "mode").text(4, "nearest").int(20, 3);
    let graph = graph(
        &[
            conv(&["x", "w1", "b1"], "a"),
            node("PRelu", &["a", "slope"], &["b"], &[]),
            node("BatchNormalization", &["b", "scale", "bias", "mean", "variance"], &["c"], &[]),
            conv(&["c", "w2"], "d"),
            node("Add", &["c", "d"], &["e"], &[]),
            node("Relu", &["e"], &["f"], &[]),
            node("Pad", &["f", "widths"], &["g"], &[]),
            node("Slice", &["g", "from", "to", "axes"], &["h"], &[]),
            node("Concat", &["f", "h", "one"], &["i"], &[int("axis", 1)]),
            conv(&["i", "w3"], "j"),
            node("Resize", &["j", "", "scales"], &["k"], &[mode]),
            node("Sigmoid", &["k"], &["y"], &[]),
        ],
        &[
            floats("w1", &[5, 3, 3, 3], &first),
            floats("b1", &[5], &bias),
            floats("slope", &[5, 1, 1], &slope),
            floats("scale", &[5], &scale),
            floats("bias", &[5], &bias),
            floats("mean", &[5], &mean),
            floats("variance", &[5], &variance),
            floats("w2", &[5, 5, 3, 3], &second),
            ints("widths", &[8], &[0, 0, 1, 0, 0, 0, 0, 0]),
            ints("from", &[1], &[0]),
            ints("to", &[1], &[SIDE as i64]),
            ints("axes", &[1], &[2]),
            floats("one", &[1, 1, SIDE as i64, SIDE as i64], &[1.0; SIDE * SIDE]),
            floats("w3", &[2, 11, 3, 3], &third),
            floats("scales", &[4], &[1.0, 1.0, 2.0, 2.0]),
        ],
        &[value("x", 1, &["1", "3", "6", "6"])],
        &[value("y", 1, &["1", "2", "12", "12"])],
    );
    let given = numbers(3 * SIDE * SIDE, 9);
    let image =
        Image { channels: 3, side: SIDE, values: given.iter().map(|x| f64::from(*x)).collect() };
    let wide = |all: &[f32], at: usize| f64::from(all[at]);
    let a = image.convolved(&first, 5).map(|c, x| x + wide(&bias, c));
    let b = a.map(|c, x| if x < 0.0 { x * wide(&slope, c) } else { x });
    let c = b.map(|c, x| {
        let normal = (x - wide(&mean, c)) / (wide(&variance, c) + 1e-5).sqrt();
        normal * wide(&scale, c) + wide(&bias, c)
    });
    let d = c.convolved(&second, 5);
    let sum = c.values.iter().zip(&d.values).map(|(c, d)| (c + d).max(0.0)).collect();
    let f = Image { values: sum, ..c };
    // One row of zeros above, and the last row away.
    let moved = (0..5 * SIDE * SIDE)
        .map(|i| f.at(i / SIDE / SIDE, (i / SIDE % SIDE) as isize - 1, (i % SIDE) as isize))
        .collect();
    let h = Image { values: moved, ..f.clone() };
    let one = Image { channels: 1, side: SIDE, values: vec![1.0; SIDE * SIDE] };
    let j = f.joined(&h).joined(&one).convolved(&third, 2);
    let expected = j.doubled().map(|_, x| 1.0 / (1.0 + (-x).exp()));

    let path = folder.put("model.onnx", &model(&graph).0);
    for budget in [None, Some("1KiB"), Some("64KiB")] {
        let model = load(&path).unwrap();
        let model = match budget {
            Some(bytes) => model.budget(bytes).unwrap(),
            None => model,
        };
        let x = tensor(given.clone()).unwrap().reshape([1, 3, SIDE, SIDE]).unwrap();
        let Ok(plan) = model.plan(std::slice::from_ref(&x)) else {
            assert_eq!(budget, Some("1KiB"));
            continue;
        };
        let made = model.call([x]).unwrap().remove(0).tensor().unwrap().to_vec::<f32>().unwrap();
        for (i, (made, expected)) in made.iter().zip(&expected.values).enumerate() {
            assert!((f64::from(*made) - expected).abs() < 1e-4, "{i}: {made}, not {expected}");
        }
        // The image comes channels-first and goes so; a constant is laid to match; filters in the file are read as they lie there.
        let transposes = plan.graph.nodes.iter().filter(|node| node.op.name == "transpose").count();
        assert!(transposes <= 3 + if budget.is_some() { 3 } else { 0 }, "{transposes}: {plan}");
    }
}
