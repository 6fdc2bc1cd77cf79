# SPDX-License-Identifier: Apache-2.0
"""What a plan needs, by the rules of <drystone/plan.h>, written down once more."""


def expand(chain):
    """Stages as the rules want them: what they save has their output and not their input."""
    stages, before = [], chain["input"]["bytes"]
    for stage in chain["stages"]:
        for _ in range(stage.get("repeat", 1)):
            saved = (stage["saved"] - stage["saved_has_input"] * before +
                     (not stage["saved_has_output"]) * stage["out"])
            stages.append(dict(stage, saved=saved, grads=stage.get("grads", 0)))
            before = stage["out"]
    return stages


class Judge:
    def __init__(self, chain, items, frame):
        self.stages = expand(chain)
        self.items = items
        self.held = frame
        self.grown = 0  # gradients of weights that the backward has made
        self.input_gradient = chain["input"].get("grad", 0)
        self.time = 0.0
        self.timeline = []

    def run(self):
        seed = self.stages[-1]["grad_out"]
        self.forward(self.items, seed, "forward")
        self.backward(self.items)
        return self.timeline

    def step(self, phase, stage, needed, took):
        self.timeline.append([self.time, needed, phase, stage])
        self.time += took

    def forward(self, items, gradients, phase):
        for item in items:
            if "save" in item:
                for i in range(item["save"][0], item["save"][1] + 1):
                    self.save(i, gradients, phase)
            else:
                self.skip(*item["ckpt"], gradients, phase)

    def save(self, i, gradients, phase):
        stage = self.stages[i]
        self.step(phase, i, self.held + gradients + stage["saved"] + stage["fwd_tmp"],
                  stage["fwd"])
        self.held += stage["saved"]

    def skip(self, first, last, gradients, phase):
        for q in range(first, last + 1):
            stage = self.stages[q]
            before = self.stages[q - 1]["out"] if q > first else 0
            self.step(phase, q, self.held + gradients + before + stage["out"] +
                      stage["fwd_tmp"], stage["fwd"])
        self.held += self.stages[last]["out"]

    def backward(self, items):
        for item in reversed(items):
            if "save" in item:
                for i in range(item["save"][1], item["save"][0] - 1, -1):
                    self.undo(i)
            else:
                first, last = item["ckpt"]
                inner = item.get("inner") or [{"save": [first, last]}]
                self.held -= self.stages[last]["out"]
                self.forward(inner, self.stages[last]["grad_out"] + self.grown, "recompute")
                self.backward(inner)

    def undo(self, i):
        stage = self.stages[i]
        below = self.stages[i - 1]["grad_out"] if i else self.input_gradient
        self.step("backward", i, self.held + self.grown + stage["grad_out"] + below +
                  stage["bwd_tmp"] + stage["grads"], stage["bwd"])
        self.held -= stage["saved"]
        self.grown += stage["grads"]


def judge(chain, items, frame):
    """{"items", "timeline"} as a plan has them."""
    return {"items": items, "timeline": Judge(chain, items, frame).run()}
