from mindspore import nn


class TinyNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.body = nn.SequentialCell(nn.Dense(12, 24), nn.ReLU(), nn.Dense(24, 1))

    def construct(self, x):
        return self.body(x)
