# SPDX-License-Identifier: Apache-2.0
"""What a plan needs, by the rules of <drystone/plan.h>, written down once more."""


def expand(chain):
    """Stages as the rules want them: what they save has their output and not their input."""
    stages, before = [], chain["input"]["bytes"]
    for stage in chain["stages"]:
        for _ in range(stage.get("repeat", 1)):
            more = ((not stage["saved_has_output"]) * stage["out"] -
                    stage["saved_has_input"] * before)
            options = {option["id"]: dict(option, saved=option["saved"] + more)
                       for option in stage.get("options", ())}
            stages.append(dict(stage, saved=stage["saved"] + more, options=options,
                               grads=stage.get("grads", 0)))
            before = stage["out"]
    return stages


def by_option(stage, name):
    """The stage as it is when it is kept by this option; None: as it is."""
    if name is None:
        return stage
    option = stage["options"][name]
    return dict(stage, saved=option["saved"], bwd_tmp=option["bwd_tmp"],
                bwd=stage["bwd"] + option["recompute"], offload=option.get("offload", 0))


class Evaluation:
    def __init__(self, chain, items, frame):
        self.stages = expand(chain)
        self.items = items
        self.held = frame
        self.grown = 0  # gradients of weights that the backward has made
        self.away = {}  # stage: bytes that are on the host
        self.leaving = (0, 0)  # the stage before, what leaves while the next one runs
        self.input_gradient = chain["input"].get("grad", 0)
        self.time = 0.0
        self.timeline = []

    def run(self):
        seed = self.stages[-1]["grad_out"]
        self.run_forward(self.items, seed, "forward")
        self.backward(self.items)
        return self.timeline

    def step(self, phase, stage, needed, took):
        self.timeline.append([self.time, needed, phase, stage])
        self.time += took

    def run_forward(self, items, gradients, phase):
        self.forward(items, gradients, phase)
        self.leaving = (0, 0)  # nothing runs after the last one

    def let_leave(self):
        stage, gone = self.leaving
        self.held -= gone
        if gone:
            self.away[stage] = gone
        self.leaving = (0, 0)

    def forward(self, items, gradients, phase):
        for item in items:
            if "ckpt" in item:
                self.skip(*item["ckpt"], gradients, phase)
                continue
            first, last = item.get("save") or item["opt"]
            for i in range(first, last + 1):
                self.save(i, by_option(self.stages[i], item.get("id")), gradients, phase)

    def save(self, i, stage, gradients, phase):
        self.step(phase, i, self.held + gradients + stage["saved"] + stage["fwd_tmp"],
                  stage["fwd"])
        self.let_leave()
        self.held += stage["saved"]
        self.leaving = (i, stage.get("offload", 0))

    def skip(self, first, last, gradients, phase):
        for q in range(first, last + 1):
            stage = self.stages[q]
            before = self.stages[q - 1]["out"] if q > first else 0
            self.step(phase, q, self.held + gradients + before + stage["out"] +
                      stage["fwd_tmp"], stage["fwd"])
            self.let_leave()
        self.held += self.stages[last]["out"]

    def backward(self, items):
        for item in reversed(items):
            if "ckpt" not in item:
                first, last = item.get("save") or item["opt"]
                for i in range(last, first - 1, -1):
                    self.undo(i, by_option(self.stages[i], item.get("id")))
            else:
                first, last = item["ckpt"]
                inner = item.get("inner") or [{"save": [first, last]}]
                self.held -= self.stages[last]["out"]
                self.run_forward(inner, self.stages[last]["grad_out"] + self.grown, "recompute")
                self.backward(inner)

    def undo(self, i, stage):
        self.held += self.away.pop(i - 1, 0)
        below = self.stages[i - 1]["grad_out"] if i else self.input_gradient
        self.step("backward", i, self.held + self.grown + stage["grad_out"] + below +
                  stage["bwd_tmp"] + stage["grads"], stage["bwd"])
        self.held -= stage["saved"]
        self.grown += stage["grads"]


def evaluate(chain, items, frame):
    """{"items", "timeline"} as a plan has them."""
    return {"items": items, "timeline": Evaluation(chain, items, frame).run()}
