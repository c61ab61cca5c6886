"""How far the frontier is from the optimum, on graphs that are too large to search through.

The integer program is that of Checkmate (Jain et al. 2020): time is cut into as many stages as there are nodes; stage t
computes node t for the first time and any earlier node again; between stages values are kept or not. A node that may
overwrite an input which is not needed any more does so. HiGHS solves it (`pip install highspy`); where it runs
out of time, the frontier is compared with its bound, which no way of running the graph can beat.

    cargo bench -p tonnage-plan --bench optimum > graphs.jsonl
    python3 crates/plan/benches/optimum.py graphs.jsonl [seconds for each]
"""

import json
import sys

import highspy
import numpy as np


class Model:
    """A few words over HiGHS: variables, rows, least cost."""

    def __init__(self):
        self.lower, self.upper, self.cost, self.whole, self.rows = [], [], [], [], []

    def variable(self, lower=0.0, upper=1.0, cost=0.0, whole=True):
        self.lower.append(lower)
        self.upper.append(upper)
        self.cost.append(cost)
        self.whole.append(whole)
        return len(self.cost) - 1

    def at_least(self, terms, bound):
        self.rows.append((bound, np.inf, terms))

    def at_most(self, terms, bound):
        self.rows.append((-np.inf, bound, terms))

    def equal(self, terms, bound):
        self.rows.append((bound, bound, terms))

    def solve(self, seconds):
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(self.cost), len(self.rows)
        lp.col_cost_ = np.array(self.cost)
        lp.col_lower_, lp.col_upper_ = np.array(self.lower), np.array(self.upper)
        lp.row_lower_ = np.array([row[0] for row in self.rows])
        lp.row_upper_ = np.array([row[1] for row in self.rows])
        start, index, value = [0], [], []
        for _, _, terms in self.rows:
            summed = {}
            for variable, factor in terms:
                summed[variable] = summed.get(variable, 0.0) + factor
            index.extend(summed.keys())
            value.extend(summed.values())
            start.append(len(index))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(start)
        lp.a_matrix_.index_, lp.a_matrix_.value_ = np.array(index), np.array(value)
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if w else kinds.kContinuous for w in self.whole]
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("time_limit", float(seconds))
        solver.setOptionValue("mip_rel_gap", 1e-3)
        solver.passModel(lp)
        solver.run()
        status, info = solver.getModelStatus(), solver.getInfo()
        done = status == highspy.HighsModelStatus.kOptimal
        impossible = status == highspy.HighsModelStatus.kInfeasible
        return done, impossible, info.objective_function_value, info.mip_dual_bound


def least_time(graph, arena, seconds):
    """Whether it was solved, whether there is no way, the least time found, and what it is at least."""
    nodes, sizes, results = graph["nodes"], graph["sizes"], set(graph["results"])
    count = len(nodes)
    maker = {value: i for i, node in enumerate(nodes) for value in node["makes"]}
    readers = {value: [] for value in maker}
    for i, node in enumerate(nodes):
        for value in node["reads"]:
            readers[value].append(i)
    unit = max(sizes)  # so that figures are about 1
    total = sum(node["seconds"] for node in nodes)
    m = Model()
    run, kept = {}, {}
    for t in range(count):
        for i in range(t + 1):
            first = 1.0 if i == t else 0.0
            run[t, i] = m.variable(lower=first, cost=nodes[i]["seconds"] / total)
        for value, made in maker.items():
            # Kept from the stage before: it was made in one.
            kept[t, value] = m.variable(upper=1.0 if made < t else 0.0)
    for t in range(count):
        for value, made in maker.items():
            if made < t:
                # What is kept was there.
                terms = [(kept[t, value], -1.0), (run[t - 1, made], 1.0), (kept[t - 1, value], 1.0)]
                m.at_least(terms, 0.0)
        for i in range(t + 1):
            for value in nodes[i]["reads"]:
                m.at_least([(run[t, maker[value]], 1.0), (kept[t, value], 1.0), (run[t, i], -1.0)], 0.0)
    for value in results:
        m.at_least([(run[count - 1, maker[value]], 1.0), (kept[count - 1, value], 1.0)], 1.0)
    for t in range(count):
        # freed[i, value]: behind node i, in this stage, the value is not needed any more. Only what is there can be.
        freed = {}
        for i in range(t + 1):
            for value in set(nodes[i]["reads"]) | set(nodes[i]["makes"]):
                if value in results and t == count - 1:
                    continue
                freed[i, value] = m.variable()
                m.at_most([(freed[i, value], 1.0), (run[t, i], -1.0)], 0.0)
                if (t + 1, value) in kept:
                    m.at_most([(freed[i, value], 1.0), (kept[t + 1, value], 1.0)], 1.0)
                for later in readers[value]:
                    if i < later <= t:
                        m.at_most([(freed[i, value], 1.0), (run[t, later], 1.0)], 1.0)
        live = [(kept[t, value], sizes[value] / unit) for value in maker]
        for i in range(t + 1):
            node = nodes[i]
            made = [(run[t, i], sizes[value] / unit) for value in node["makes"]]
            # A value that is kept and computed again would count twice: it is not computed then.
            for value in node["makes"]:
                m.at_most([(run[t, i], 1.0), (kept[t, value], 1.0)], 1.0)
            # One input at most is taken over; the others go behind the node.
            over = []
            for value in node["over"]:
                if (i, value) in freed:
                    taken = m.variable()
                    m.at_most([(taken, 1.0), (freed[i, value], -1.0)], 0.0)
                    over.append((taken, -sizes[value] / unit))
            if len(over) > 1:
                m.at_most([(taken, 1.0) for taken, _ in over], 1.0)
            room = [(run[t, i], node["room"] / unit)]
            m.at_most(live + made + over + room, arena / unit)
            gone = [(freed[i, v], -sizes[v] / unit) for v in set(node["reads"]) | set(node["makes"]) if (i, v) in freed]
            live = live + made + gone
    done, impossible, least, bound = m.solve(seconds)
    return done, impossible, least * total, bound * total


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        graphs = [json.loads(line) for line in file if line.startswith("{")]
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 120.0
    over = []
    for graph in graphs:
        for point in graph["points"]:
            done, impossible, least, bound = least_time(graph, point["arena"], seconds)
            if impossible:
                # What runs again is fused anew, which the program does not know.
                print(f"{graph['name']:<18} {point['arena']:>10}: the program knows no way")
                continue
            best = least if done else bound
            over.append(max(point["seconds"] / best - 1.0, 0.0))
            note = "" if done else f"  (a bound; {(point['seconds'] / least - 1.0) * 100:.2f}% over the best found)"
            print(f"{graph['name']:<18} {point['arena']:>10}: {over[-1] * 100:6.2f}% over{note}", flush=True)
    print(f"{len(over)} budgets: {100 * sum(over) / max(len(over), 1):.2f}% over the optimum on average")


if __name__ == "__main__":
    main()
