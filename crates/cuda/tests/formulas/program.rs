//! The program that runs the headers on this machine.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use tonnage_core::DType;
use tonnage_cuda::headers::FORMULAS;

use super::cases::Case;
use super::inputs::{COUNT, Inputs, REGISTERS};

/// The first that this machine has.
pub fn compiler() -> Option<&'static str> {
    let found = |name: &&str| Command::new(name).arg("--version").output().is_ok();
    ["c++", "g++", "clang++"].into_iter().find(found)
}

/// A folder of this process, which goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        let name = format!("tonnage-formulas-{}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Programs that the cases are spread over: they are compiled side by side.
const UNITS: usize = 4;

/// What the cases give, one behind the other.
pub fn outputs(compiler: &str, inputs: &Inputs, cases: &[Case]) -> Vec<u8> {
    let folder = Folder::new();
    let path = |name: &str| folder.0.join(name);
    fs::write(path("prelude.h"), include_str!("prelude.h")).unwrap();
    for (name, text) in FORMULAS {
        fs::write(path(name), text).unwrap();
    }
    fs::write(path("inputs"), inputs.bytes()).unwrap();
    let flags = ["-std=c++17", "-O2", "-ffp-contract=off"];
    let machine: &[&str] = if cfg!(target_arch = "x86_64") { &["-mfma"] } else { &[] };
    let units = cases.chunks(cases.len().div_ceil(UNITS)).enumerate().map(|(i, cases)| {
        let (unit, program) = (path(&format!("unit{i}.cpp")), path(&format!("unit{i}")));
        fs::write(&unit, source(cases)).unwrap();
        let mut compile = Command::new(compiler);
        compile.current_dir(&folder.0).args(flags).args(machine).arg("-o").arg(&program).arg(&unit);
        (program, compile.spawn().unwrap())
    });
    let mut out = Vec::new();
    for (program, mut compile) in units.collect::<Vec<_>>() {
        assert!(compile.wait().unwrap().success(), "the headers do not compile");
        let run = Command::new(&program).current_dir(&folder.0).output().unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        out.extend(run.stdout);
    }
    out
}

/// A loop for each case over the operands `<dtype>_<a, b or c>`, whose results are written to the standard output.
fn source(cases: &[Case]) -> String {
    let mut text = String::from("#include \"prelude.h\"\n");
    for (name, _) in FORMULAS {
        writeln!(text, "#include \"{name}\"").unwrap();
    }
    writeln!(text, "static const int COUNT = {COUNT};").unwrap();
    let mut read = String::new();
    for dtype in REGISTERS {
        for operand in ["a", "b", "c"] {
            let name = format!("{dtype}_{operand}");
            writeln!(text, "static {} {name}[COUNT];", c_type(dtype)).unwrap();
            writeln!(read, "    ok &= fread({name}, sizeof {name}, 1, file) == 1;").unwrap();
        }
    }
    text.push_str(
        "template <class T, class F> __attribute__((noinline)) static void run(F f) {\n    \
         static T out[COUNT];\n    for (int i = 0; i < COUNT; i++) out[i] = f(i);\n    \
         fwrite(out, sizeof out, 1, stdout);\n}\n",
    );
    for (i, case) in cases.iter().enumerate() {
        let (out, call) = (c_type(case.out), &case.call);
        writeln!(text, "static void case{i}() {{ run<{out}>([](int i) {{ return {call}; }}); }}")
            .unwrap();
    }
    write!(
        text,
        "int main() {{\n    FILE *file = fopen(\"inputs\", \"rb\");\n    bool ok = file;\n{read}"
    )
    .unwrap();
    text.push_str("    if (!ok) return 1;\n");
    for i in 0..cases.len() {
        writeln!(text, "    case{i}();").unwrap();
    }
    text.push_str("    return 0;\n}\n");
    text
}

/// How registers hold it.
pub fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F16 | DType::BF16 => "u16",
        DType::Bool => "u8",
        number => number.name(),
    }
}
