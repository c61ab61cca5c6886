//! The passes of a row program, as text: each goes through the elements of a row, a vector at a time.

use std::fmt::Write as _;

use super::super::c_type;
use super::super::operand::{load, stored};
use super::held::Holding;
use super::program::{Pass, RowOperand};
use super::{NAMES, Writer, uses};

impl Writer<'_> {
    pub(super) fn pass(&mut self, pass: &Pass, outputs: usize) {
        match *pass {
            Pass::Let(text) => self.line(&format!("  {text}")),
            Pass::Sum(name, expression) => self.sum(name, expression, "y", ""),
            Pass::SumReplaced(name, operand, by, of) => {
                let keep = self.keep(operand);
                self.sum(name, by, of, &keep);
                self.replace(operand, by);
            }
            Pass::Powers(name) => self.powers(name, false),
            Pass::PowersReplaced(name) => self.powers(name, true),
            Pass::Store(expression) => {
                let (ty, to) = (c_type(self.key.dtype), outputs);
                // Rounded before something is added, as where it is a step of its own.
                let made = stored(self.key.dtype, "y");
                let put = match self.key.added {
                    false => format!("z.v[v] = {made};"),
                    true => {
                        let (own, other) =
                            (load(self.key.dtype, "m"), load(self.key.dtype, "d.v[v]"));
                        let sum = stored(self.key.dtype, "p_add(own, other)");
                        format!(
                            "const {ty} m = {made}; const C own = {own}, other = {other}; z.v[v] = {sum};"
                        )
                    }
                };
                let step = match self.key.apart {
                    true => format!("p.w[{}]", outputs + usize::from(self.key.outputs)),
                    false => "n".to_string(),
                };
                let at = format!("(({ty}*)p.w[{to}] + (i64)o * (i64){step} + s)");
                let end = match self.key.ragged {
                    false => format!("      *(Vec<{ty}, V>*){at} = z;"),
                    true => format!(
                        "      if (s + V <= size) *(Vec<{ty}, V>*){at} = z;\n      else {{\n#pragma unroll\n      for (int v = 0; v < V; v++) if (s + (idx)v < size) {at}[v] = z.v[v];\n      }}"
                    ),
                };
                let mut begin = format!("      Vec<{ty}, V> z;");
                if self.key.added {
                    let word = self.added(outputs);
                    let _ = write!(
                        begin,
                        "\n      const Vec<{ty}, V> d = *(const Vec<{ty}, V>*)((const {ty}*)p.w[{word}] + (i64)o * (i64)n + s);"
                    );
                }
                self.each_with(&begin, expression, &put, &end);
            }
            Pass::Keep(place, expression) => {
                let to = outputs + usize::from(self.key.outputs);
                self.line(&format!(
                    "  if (live && lane == 0) ((C*)p.w[{to}])[(i64)rows * {place} + o] = {expression};"
                ));
            }
            Pass::RowResult(output, expression) => {
                let (ty, to) = (c_type(self.key.dtype), outputs + output);
                let value = stored(self.key.dtype, &format!("({expression})"));
                self.line(&format!("  if (live && lane == 0) (({ty}*)p.w[{to}])[o] = {value};"));
            }
            Pass::WideResult(output, expression) => {
                let to = outputs + output;
                self.line(&format!("  if (live && lane == 0) ((C*)p.w[{to}])[o] = {expression};"));
            }
            Pass::Pick(name, label) => {
                let step = self.word_of(0) + 1;
                let value = load(
                    self.key.operands[0].dtype,
                    &format!("x0[(i64){label} * (i64)p.w[{step}]]"),
                );
                self.line(&format!("  C {name} = 0;"));
                self.line(&format!("  if (live && {label} < n) {name} = {value};"));
            }
        }
    }

    /// What leaves out elements behind the end of a row.
    pub(super) fn inside(&self) -> &'static str {
        if self.key.ragged { "if (s + (idx)v >= size) continue; " } else { "" }
    }

    /// A sum of what is made of `y`, which is an expression of each element.
    pub(super) fn sum(&mut self, name: &str, expression: &str, of: &str, keep: &str) {
        self.line(&format!("  C {name}_ = 0;"));
        self.each(expression, &format!("{name}_ = {name}_ + ({of});"), keep);
        self.line(&format!("  const C {name} = rows_sum<L>({name}_, tree);"));
    }

    /// Declares the elements that an expression names, and reads those that are not in registers.
    fn names(&mut self, expression: &str) -> String {
        let mut names = String::new();
        let in_registers = matches!(self.key.holding, Holding::Registers(_));
        let operands = self.key.operands.iter().zip(NAMES).enumerate();
        let (mut plain, mut replaced) = (Vec::new(), Vec::new());
        for (i, (class, name)) in operands {
            match (class.operand, &self.replaced[i]) {
                (RowOperand::Number(_) | RowOperand::Label(_), _) => {}
                (RowOperand::Held, _) if in_registers => {
                    let _ = write!(names, "const C {name} = h{i}[h * V + v]; ");
                }
                (_, Some(by)) if uses(expression, name) => replaced.push((i, name, by.clone())),
                (_, None) => plain.push((i, name)),
                _ => {}
            }
        }
        plain.retain(|(_, name)| {
            uses(expression, name) || replaced.iter().any(|(.., by)| uses(by, name))
        });
        for (i, name) in plain {
            self.line(&format!("      C r{i}[V];"));
            self.read(i, &format!("r{i}[v] = "));
            let _ = write!(names, "const C {name} = r{i}[v]; ");
        }
        for (i, name, by) in replaced {
            self.line(&format!("      C r{i}[V];"));
            self.read(i, &format!("r{i}[v] = "));
            let _ = write!(
                names,
                "C {name}_; {{ const C {name} = r{i}[v]; {name}_ = {by}; }} const C {name} = {name}_; "
            );
        }
        names
    }

    pub(super) fn each(&mut self, expression: &str, with: &str, keep: &str) {
        self.each_with("", expression, &format!("{with} {keep}"), "");
    }

    /// Goes through the elements of a row: `y` is an expression of each, `with` is done for each, `end` for each access.
    fn each_with(&mut self, begin: &str, expression: &str, with: &str, end: &str) {
        let held = match self.key.holding {
            Holding::Registers(held) => held,
            Holding::Shared(_) | Holding::Nowhere => 0,
        };
        match held {
            0 => {
                self.line("#pragma unroll 2\n  for (idx s = lane * V; s < size; s += (idx)L * V) {")
            }
            _ => {
                self.line(&format!("#pragma unroll\n  for (int h = 0; h < {held}; h++) {{"));
                self.line(
                    "    const idx s = ((idx)h * L + lane) * V;\n    if (s >= size) continue;",
                );
            }
        }
        let mut names = self.names(expression);
        if uses(expression, "at") {
            names.push_str("const idx at = s + (idx)v; ");
        }
        self.line(begin);
        let inside = self.inside();
        self.line(&format!(
            "#pragma unroll\n      for (int v = 0; v < V; v++) {{ {inside}{names}const C y = {expression}; {with} }}"
        ));
        self.line(end);
        self.line("  }");
    }
}
