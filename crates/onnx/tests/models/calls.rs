//! What models give, and the memory that they take.

use tonnage::{Bytes, DType, Elementwise, Tensor, range, tensor};
use tonnage_onnx::load;

use crate::write::{
    Folder, Message, floats, graph, graph_attribute, int, ints, layer, model, node, value,
};

/// A model of nodes without weights, in a folder.
fn loaded(folder: &Folder, graph: &Message) -> tonnage_onnx::Model {
    load(folder.put("model.onnx", &model(graph).0)).unwrap()
}

fn floats_of(value: tonnage_onnx::Value) -> Vec<f32> {
    value.tensor().unwrap().to_vec::<f32>().unwrap()
}

#[test]
fn a_model_gives_what_its_nodes_say_for_every_batch() {
    let folder = Folder::new();
    let model = load(folder.put("layer.onnx", &layer().0)).unwrap();
    assert_eq!(model.inputs()[0].to_string(), "f32[batch, 4]");
    for batch in [1usize, 3] {
        let numbers: Vec<f32> = (0..batch * 4).map(|n| n as f32 - 3.0).collect();
        let x = tensor(numbers.clone()).unwrap().reshape([batch, 4]).unwrap();
        let made = floats_of(model.call([x]).unwrap().remove(0));
        for row in 0..batch {
            for column in 0..3 {
                let products =
                    (0..4).map(|k| numbers[row * 4 + k] * ((k * 3 + column) as f32 / 4.0 - 1.5));
                let sum = products.sum::<f32>() + [0.5, 0.0, -0.5][column];
                assert_eq!(made[row * 3 + column], sum.max(0.0), "row {row}, column {column}");
            }
        }
    }
}

#[test]
fn the_largest_batch_fits_and_one_more_does_not() {
    let folder = Folder::new();
    let path = folder.put("layer.onnx", &layer().0);
    let most = load(&path).unwrap().max_batch("batch", &[], Bytes::new(1 << 20)).unwrap();
    assert!(most > 1000, "{most}");
    let model = load(&path).unwrap().budget("1MiB").unwrap();
    let fits = |n: usize| model.plan(&model.specs(&[("batch", n)]).unwrap());
    assert!(fits(most).unwrap().peak().get() <= 1 << 20);
    assert!(fits(most + 1).is_err());
}

#[test]
fn plans_and_refusals_name_nodes_and_the_line_of_the_call() {
    let folder = Folder::new();
    let path = folder.put("layer.onnx", &layer().0);
    let planned = |bytes: &str, rows: usize| {
        let model = load(&path).unwrap().budget(bytes).unwrap();
        model.plan(&model.specs(&[("batch", rows)]).unwrap())
    };
    let plan = planned("1MiB", 4).unwrap();
    let lines: Vec<String> = plan.graph.nodes.iter().map(|node| node.source.to_string()).collect();
    assert!(lines.iter().all(|line| line.starts_with("layer.onnx: the ")), "{lines:?}");
    assert!(lines.contains(&"layer.onnx: the Gemm:1".to_string()), "{lines:?}");
    let error = planned("1KiB", 4096).unwrap_err();
    assert!(error.to_string().contains(file!()), "{error}");
    let model = load(&path).unwrap().budget("1KiB").unwrap();
    let error = model.call([tonnage::ones([4096, 4]).unwrap()]).unwrap_err();
    assert!(error.to_string().contains("layer.onnx: the Gemm:1"), "{error}");
}

#[test]
fn a_listener_hears_of_every_node_that_is_imported() {
    let folder = Folder::new();
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let told = heard.clone();
    let model = load(folder.put("layer.onnx", &layer().0)).unwrap();
    let model = model.on_node(move |nodes| told.lock().unwrap().push(nodes));
    model.plan(&model.specs(&[("batch", 2)]).unwrap()).unwrap();
    assert_eq!(*heard.lock().unwrap(), [1, 2]);
}

#[test]
fn shapes_that_are_computed_from_shapes_are_numbers_in_one_plan() {
    let folder = Folder::new();
    let graph = graph(
        &[
            node("Shape", &["x"], &["shape"], &[]),
            node("Gather", &["shape", "first"], &["rows"], &[int("axis", 0)]),
            node("Concat", &["rows", "rest"], &["to"], &[int("axis", 0)]),
            node("Reshape", &["x", "to"], &["y"], &[]),
        ],
        &[ints("first", &[1], &[0]), ints("rest", &[1], &[-1])],
        &[value("x", 1, &["batch", "2", "3"])],
        &[value("y", 1, &["batch", "6"])],
    );
    let model = loaded(&folder, &graph);
    assert!(model.plan(&model.specs(&[("batch", 5)]).unwrap()).is_ok());
    let x = range(0.0f32, 24.0, 1.0).unwrap().reshape([4, 2, 3]).unwrap();
    let made = model.call([x]).unwrap().remove(0).tensor().unwrap();
    assert_eq!(made.shape().to_string(), "[4, 6]");
}

#[test]
fn sizes_that_data_decide_cut_a_model_into_segments() {
    let folder = Folder::new();
    // The elements that are not 0, doubled; how many there are is only known then.
    let graph = graph(
        &[
            node("Neg", &["x"], &["negative"], &[]),
            node("NonZero", &["negative"], &["places"], &[]),
            node("Transpose", &["places"], &["rows"], &[]),
            node("GatherND", &["negative", "rows"], &["found"], &[]),
            node("Add", &["found", "found"], &["y"], &[]),
        ],
        &[],
        &[value("x", 1, &["n"])],
        &[value("y", 1, &["m"])],
    );
    let model = loaded(&folder, &graph);
    for (given, expected) in [
        (vec![0.0f32, 1.0, 0.0, 3.0], vec![-2.0f32, -6.0]),
        (vec![1.0], vec![-2.0]),
        (vec![0.0], vec![]),
    ] {
        let made = model.call([tensor(given).unwrap()]).unwrap().remove(0);
        assert_eq!(floats_of(made), expected);
    }
    let error = model.plan(&model.specs(&[("n", 4)]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("node `the Transpose`") && error.contains("model.onnx"), "{error}");
}

#[test]
fn a_branch_is_the_one_that_is_taken() {
    let folder = Folder::new();
    let branch = |op: &str| {
        graph(&[node(op, &["x"], &["made"], &[])], &[], &[], &[value("made", 1, &["2"])])
    };
    let graph = graph(
        &[node(
            "If",
            &["condition"],
            &["y"],
            &[
                graph_attribute("then_branch", &branch("Neg")),
                graph_attribute("else_branch", &branch("Abs")),
            ],
        )],
        &[],
        &[value("condition", 9, &[]), value("x", 1, &["2"])],
        &[value("y", 1, &["2"])],
    );
    let model = loaded(&folder, &graph);
    let x = tensor([-1.0f32, 2.0]).unwrap();
    for (condition, expected) in [(true, [1.0f32, -2.0]), (false, [1.0, 2.0]), (true, [1.0, -2.0])]
    {
        let condition = tonnage::full(condition, DType::Bool, tonnage::Shape::scalar()).unwrap();
        let made = model.call([condition, x.clone()]).unwrap().remove(0);
        assert_eq!(floats_of(made), expected);
    }
}

#[test]
fn what_a_small_input_decides_is_one_plan_for_each_number_until_there_are_many() {
    let folder = Folder::new();
    let branch = |op: &str| {
        graph(&[node(op, &["x"], &["made"], &[])], &[], &[], &[value("made", 1, &["2"])])
    };
    let branches = [
        graph_attribute("then_branch", &branch("Neg")),
        graph_attribute("else_branch", &branch("Abs")),
    ];
    let graph = graph(
        &[
            node("Equal", &["rate", "usual"], &["is_usual"], &[]),
            node("If", &["is_usual"], &["y"], &branches),
        ],
        &[ints("usual", &[], &[16000])],
        &[value("rate", 7, &[]), value("x", 1, &["2"])],
        &[value("y", 1, &["2"])],
    );
    let model = loaded(&folder, &graph);
    let x = tensor([-1.0f32, 2.0]).unwrap();
    let inputs =
        |rate: i64| [tonnage::full(rate, DType::I64, tonnage::Shape::scalar()).unwrap(), x.clone()];
    assert!(model.plan(&inputs(16000)).is_ok());
    for (rate, plans) in [(16000i64, 1), (8000, 1), (1, 1), (16000, 1), (2, 2), (3, 2), (8000, 1)] {
        let made = model.call(inputs(rate)).unwrap().remove(0);
        let expected = if rate == 16000 { [1.0, -2.0] } else { [1.0, 2.0] };
        assert_eq!((floats_of(made), model.last_run().len()), (expected.to_vec(), plans), "{rate}");
    }
}

#[test]
fn a_loop_until_something_holds_runs_to_its_end() {
    let folder = Folder::new();
    // Doubles a number until it is above 100.
    let body = graph(
        &[
            node("Add", &["before", "before"], &["after"], &[]),
            node("Less", &["after", "most"], &["goes_on"], &[]),
        ],
        &[floats("most", &[], &[100.0])],
        &[value("iteration", 7, &[]), value("condition", 9, &[]), value("before", 1, &[])],
        &[value("goes_on", 9, &[]), value("after", 1, &[])],
    );
    let graph = graph(
        &[
            node("Abs", &["x"], &["start"], &[]),
            node("Loop", &["", "", "start"], &["y"], &[graph_attribute("body", &body)]),
            node("Neg", &["y"], &["z"], &[]),
        ],
        &[],
        &[value("x", 1, &[])],
        &[value("z", 1, &[])],
    );
    let model = loaded(&folder, &graph);
    for (given, expected) in [(-3.0f32, -192.0f32), (99.0, -198.0), (200.0, -400.0)] {
        let x = tensor([given]).unwrap().reshape(tonnage::Shape::scalar()).unwrap();
        assert_eq!(floats_of(model.call([x]).unwrap().remove(0)), [expected]);
    }
}

#[test]
fn external_data_are_read_from_the_folder_of_the_model() {
    let folder = Folder::new();
    let entry = |key: &str, text: &str| Message::default().text(1, key).text(2, text);
    let weight = Message::default()
        .int(1, 3)
        .int(2, 1)
        .text(8, "w")
        .message(13, &entry("location", "weights.bin"))
        .message(13, &entry("offset", "4"))
        .int(14, 1);
    let graph = graph(
        &[node("Add", &["x", "w"], &["y"], &[])],
        &[weight],
        &[value("x", 1, &["3"])],
        &[value("y", 1, &["3"])],
    );
    let numbers: Vec<u8> = [9.0f32, 1.0, 2.0, 3.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    folder.put("weights.bin", &numbers);
    let model = loaded(&folder, &graph);
    let made = model.call([tensor([10.0f32, 20.0, 30.0]).unwrap()]).unwrap().remove(0);
    assert_eq!(floats_of(made), [11.0, 22.0, 33.0]);
}

#[test]
fn a_function_of_a_model_is_its_nodes_with_the_attributes_of_the_call() {
    let folder = Folder::new();
    let refers = Message::default().text(1, "axis").text(21, "along").int(20, 2);
    let inner = node("Concat", &["a", "a"], &["b"], &[refers]);
    let function = Message::default()
        .text(1, "Twice")
        .text(4, "a")
        .text(5, "b")
        .text(6, "along")
        .message(7, &inner)
        .message(9, &Message::default().text(1, "").int(2, 17))
        .text(10, "ours");
    let call = node("Twice", &["x"], &["y"], &[int("along", 1)]).text(7, "ours");
    let graph = graph(&[call], &[], &[value("x", 1, &["1", "2"])], &[value("y", 1, &["1", "4"])]);
    let bytes = model(&graph)
        .message(8, &Message::default().text(1, "ours").int(2, 1))
        .message(25, &function);
    let model = load(folder.put("model.onnx", &bytes.0)).unwrap();
    let x: Tensor = tensor([[1.0f32, 2.0]]).unwrap();
    assert_eq!(floats_of(model.call([x]).unwrap().remove(0)), [1.0, 2.0, 1.0, 2.0]);
}

#[test]
fn small_whole_numbers_may_be_stored_by_varints() {
    let folder = Folder::new();
    let weight = Message::default().int(1, 2).int(2, 7).text(8, "w").bytes(7, &[5, 0xac, 0x02]);
    let graph = graph(
        &[node("Add", &["x", "w"], &["y"], &[])],
        &[weight],
        &[value("x", 7, &["2"])],
        &[value("y", 7, &["2"])],
    );
    let model = loaded(&folder, &graph);
    let made = model.call([tensor([1i64, 1]).unwrap()]).unwrap().remove(0).tensor().unwrap();
    assert_eq!(made.cast(DType::I64).unwrap().to_vec::<i64>().unwrap(), [6, 301]);
}

#[test]
fn nodes_may_stand_before_those_that_they_need() {
    let folder = Folder::new();
    let graph = graph(
        &[
            node("Abs", &["d"], &["y"], &[]),
            node("Sub", &["b", "c"], &["d"], &[]),
            node("Neg", &["b"], &["c"], &[]),
            node("Mul", &["x", "x"], &["b"], &[]),
        ],
        &[],
        &[value("x", 1, &["2"])],
        &[value("y", 1, &["2"])],
    );
    let model = loaded(&folder, &graph);
    let made = model.call([tensor([3.0f32, -2.0]).unwrap()]).unwrap().remove(0);
    assert_eq!(floats_of(made), [18.0, 8.0]);
}

#[test]
fn a_quantized_lstm_multiplies_what_8_bits_leave_of_its_inputs() {
    let folder = Folder::new();
    let bytes = |name: &str, dims: &[i64], values: &[i8]| {
        let raw: Vec<u8> = values.iter().map(|n| *n as u8).collect();
        crate::write::bytes(name, true, dims, &raw)
    };
    let w: [i8; 12] = [50, -20, 30, 90, 10, 60, -70, 40, 120, -110, 80, 25];
    let inputs = ["x", "w", "r", "", "", "", "", "", "w_scale", "w_zero", "r_scale", "r_zero"];
    let lstm = node("DynamicQuantizeLSTM", &inputs, &["y"], &[int("hidden_size", 1)]);
    let graph = graph(
        &[lstm.text(7, "com.microsoft")],
        &[
            bytes("w", &[1, 3, 4], &w),
            bytes("r", &[1, 1, 4], &[5, 6, 7, 8]),
            floats("w_scale", &[1], &[0.01]),
            bytes("w_zero", &[1], &[3]),
            floats("r_scale", &[1], &[0.02]),
            bytes("r_zero", &[1], &[0]),
        ],
        &[value("x", 1, &["1", "1", "3"])],
        &[value("y", 1, &["1", "1", "1", "1"])],
    );
    let x = tensor([1.0f32, -0.5, 0.3018]).unwrap().reshape([1, 1, 3]).unwrap();
    let made = floats_of(loaded(&folder, &graph).call([x]).unwrap().remove(0));
    // A step is 1.5 / 255, and the last input is 51 of them.
    let gate = |at: usize| -> f64 {
        let x = [1.0, -0.5, 0.3];
        (0..3).map(|k| x[k] * (f64::from(w[k * 4 + at]) - 3.0) * 0.01).sum()
    };
    let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
    let cell = sigmoid(gate(0)) * gate(3).tanh();
    let expected = sigmoid(gate(1)) * cell.tanh();
    assert!((f64::from(made[0]) - expected).abs() < 1e-6, "{made:?}, not {expected}");
}
