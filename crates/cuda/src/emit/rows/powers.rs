//! Sums of powers of e of a row's elements less the largest of them: what softmax and cross-entropy are made of.

use super::Writer;
use super::held::Holding;

/// Where that is defined.
pub const NEAR: &str = include_str!("../../../kernels/near.cuh");

impl Writer<'_> {
    /// The function of powers: results of 16 bits are rounded more than it rounds.
    fn exp(&self) -> &'static str {
        if self.key.dtype.size() == 2 { "exp_near_half" } else { "exp_near" }
    }

    /// What is added up.
    fn power(&self) -> String {
        format!("{}(a - base)", self.exp())
    }

    /// The largest element of a row and the sum of powers, which may stand for the elements from there on.
    pub(super) fn powers(&mut self, name: &str, replaces: bool) {
        match self.key.holding {
            Holding::Registers(_) => {
                let keep = if replaces { self.keep(0) } else { String::new() };
                self.held_powers(name, &keep);
            }
            Holding::Shared(_) => self.held_powers(name, ""),
            Holding::Nowhere => self.at_once(name),
        }
        if replaces {
            self.replace(0, &self.power());
        }
    }

    /// Of a row that is held.
    fn held_powers(&mut self, name: &str, keep: &str) {
        self.line("  C most_ = LOWEST;");
        self.each("a", "most_ = rows_most(most_, y);", "");
        self.line("  const C most = rows_max<L>(most_, tree);");
        self.line("  const C base = most == LOWEST ? (C)0 : most;");
        self.sum(name, &self.power(), "y", keep);
    }

    /// Of a row that is read: once, each thread with the largest that it has seen, for which it changes its sum.
    fn at_once(&mut self, name: &str) {
        self.line(&format!("  C most_ = LOWEST, {name}_ = 0;"));
        self.line(
            "  for (idx s = lane * V; s < size; s += (idx)L * V) {\n      C r0[V], top = most_;",
        );
        self.read(0, "r0[v] = ");
        let (exp, power) = (self.exp(), self.power());
        self.line(&format!(
            "#pragma unroll
      for (int v = 0; v < V; v++) top = rows_most(top, r0[v]);
      if (top > most_) {{
        {name}_ = most_ == LOWEST ? {name}_ : {name}_ * {exp}(most_ - top);
        most_ = top;
      }}
      const C base = most_ == LOWEST ? (C)0 : most_;
#pragma unroll
      for (int v = 0; v < V; v++) {{ const C a = r0[v]; {name}_ = {name}_ + {power}; }}
  }}
  const C most = rows_max<L>(most_, tree);
  const C base = most == LOWEST ? (C)0 : most;
  {name}_ = most_ == LOWEST ? {name}_ : {name}_ * {exp}(most_ - base);
  const C {name} = rows_sum<L>({name}_, tree);"
        ));
    }
}
