//! Files that are damaged or lie: an error that names the file, never a panic, never memory for what is not there.

use tonnage::{Tensor, tensor};
use tonnage_onnx::load;

use crate::write::{Folder, Message, floats, graph, graph_attribute, layer, model, node, value};

/// Loads, plans and calls; an error has to name the file.
fn tried(folder: &Folder, bytes: &[u8]) -> Result<(), String> {
    let path = folder.put("bad.onnx", bytes);
    let run = || -> tonnage::Result<()> {
        let model = load(&path)?;
        let inputs: Vec<Tensor> = vec![tensor([[1.0f32, 2.0, 3.0, 4.0]])?];
        model.plan(&inputs)?;
        model.call(inputs).map(drop)
    };
    match run() {
        Ok(()) => Ok(()),
        Err(error) => {
            let text = error.to_string();
            assert!(text.contains("bad.onnx") || text.contains("more than"), "{text}");
            Err(text)
        }
    }
}

#[test]
fn a_file_that_is_cut_anywhere_is_a_model_or_an_error() {
    let folder = Folder::new();
    let whole = layer().0;
    assert_eq!(tried(&folder, &whole), Ok(()));
    let refused = (0..whole.len()).filter(|end| tried(&folder, &whole[..*end]).is_err()).count();
    assert!(refused > whole.len() / 2, "{refused} of {}", whole.len());
}

#[test]
fn a_file_with_any_byte_changed_is_a_model_or_an_error() {
    let folder = Folder::new();
    let whole = layer().0;
    for at in 0..whole.len() {
        for change in [1u8, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            let _ = tried(&folder, &bytes);
        }
    }
}

fn refused(graph: &Message, says: &[&str]) {
    let folder = Folder::new();
    let error = tried(&folder, &model(graph).0).unwrap_err();
    for part in says {
        assert!(error.contains(part), "{part}: {error}");
    }
}

fn of_nodes(nodes: &[Message], weights: &[Message]) -> Message {
    graph(nodes, weights, &[value("x", 1, &["n", "4"])], &[value("y", 1, &["n", "4"])])
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    refused(
        &of_nodes(&[node("Wonder", &["x"], &["y"], &[])], &[]),
        &["node `the Wonder`", "op Wonder"],
    );
    let mode = Message::default().text(1, "mode").text(4, "odd").int(20, 3);
    let pads = crate::write::ints("pads", &[4], &[0, 0, 0, 0]);
    refused(
        &of_nodes(&[node("Pad", &["x", "pads"], &["y"], &[mode])], &[pads]),
        &["node `the Pad`", "mode `odd`"],
    );
    let complex = Message::default().int(1, 4).int(2, 14).text(8, "w").bytes(9, &[0; 32]);
    refused(
        &of_nodes(&[node("Add", &["x", "w"], &["y"], &[])], &[complex]),
        &["complex64", "tensor `w`"],
    );
}

#[test]
fn nodes_that_need_each_other_are_refused() {
    let nodes = [node("Add", &["x", "b"], &["a"], &[]), node("Add", &["x", "a"], &["b"], &[])];
    refused(&of_nodes(&nodes, &[]), &["node `the Add`", "which nothing before it makes"]);
    refused(&of_nodes(&[node("Abs", &["x"], &["z"], &[])], &[]), &["output `y`"]);
}

#[test]
fn shapes_that_lie_take_no_memory() {
    for dims in [&[1 << 40, 1 << 20][..], &[-3, 4], &[1 << 62, 1 << 62], &[100]] {
        refused(
            &of_nodes(&[node("Add", &["x", "w"], &["y"], &[])], &[floats("w", dims, &[1.0; 4])]),
            &[],
        );
    }
    // A field that says that it is longer than the file.
    let mut bytes = layer().0;
    let at = bytes.len();
    bytes.extend([0x3a, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert!(tried(&Folder::new(), &bytes).unwrap_err().contains("bytes"), "{at}");
}

#[test]
fn graphs_that_nest_without_end_are_refused() {
    let mut inner = graph(&[], &[], &[], &[]);
    for _ in 0..500 {
        inner = graph(
            &[node("If", &["x"], &["y"], &[graph_attribute("then_branch", &inner)])],
            &[],
            &[],
            &[],
        );
    }
    refused(&inner, &["nest"]);
    // A function that calls itself.
    let function = Message::default()
        .text(1, "Again")
        .text(4, "a")
        .text(5, "b")
        .message(7, &node("Again", &["a"], &["b"], &[]).text(7, "ours"))
        .text(10, "ours");
    let call = of_nodes(&[node("Again", &["x"], &["y"], &[]).text(7, "ours")], &[]);
    let error = tried(&Folder::new(), &model(&call).message(25, &function).0).unwrap_err();
    assert!(error.contains("nest"), "{error}");
}

#[test]
fn external_data_outside_of_the_folder_are_refused() {
    let outside = Folder::new();
    let secret = outside.put("secret", &[0; 64]);
    for path in ["../secret", secret.to_str().unwrap(), "", "a/../../secret"] {
        let weight = Message::default()
            .int(1, 4)
            .int(2, 1)
            .text(8, "w")
            .message(13, &Message::default().text(1, "location").text(2, path))
            .int(14, 1);
        refused(
            &of_nodes(&[node("Add", &["x", "w"], &["y"], &[])], &[weight]),
            &["not in the model's folder"],
        );
    }
}

#[test]
fn inputs_of_another_type_are_refused_with_both_types() {
    let folder = Folder::new();
    let model = load(folder.put("layer.onnx", &layer().0)).unwrap();
    let error = model.call([tensor([[1.0f32, 2.0]]).unwrap()]).unwrap_err().to_string();
    assert!(error.contains("f32[batch, 4]") && error.contains("f32[1, 2]"), "{error}");
    let error = model.specs(&[("bach", 3)]).unwrap_err().to_string();
    assert!(error.contains("bach") && error.contains("it has batch"), "{error}");
    assert!(model.specs(&[]).unwrap_err().to_string().contains("`batch` is open"));
}
