"""The numbers that PyTorch 2.13 gave on the CPU after `torch.manual_seed(17)`, and the uniform
number that it gave after each: so many words were taken.

They are equal to the bit where no logarithm or trigonometric function is computed (docs/random.md).
"""

import pytest

import jaxgrad

NAMES = {
    "torch": jaxgrad,
    "nn": jaxgrad.nn,
    "F": jaxgrad.nn.functional,
    "d": jaxgrad.distributions,
    "data": jaxgrad.utils.data,
    "pipes": jaxgrad.utils.data.datapipes.iter,
    "map_pipes": jaxgrad.utils.data.datapipes.map,
    "pack": jaxgrad.nn.utils.rnn.pack_padded_sequence,
    "Sobol": jaxgrad.quasirandom.SobolEngine,
}

NUMBERS = [
    ("torch.rand(3)", [0.43424124, 0.53510958, 0.83020872], 0.12386358),
    (
        "torch.rand(3, dtype=torch.float64)",
        [0.473929968728, 0.641670152776, 0.23456901973],
        0.38249111,
    ),
    (
        "torch.rand(2, dtype=torch.complex64)",
        [0.43424124, 0.53510958, 0.83020872, 0.12386358],
        0.029321074,
    ),
    (
        "torch.rand(4, dtype=torch.bfloat16)",
        [0.43359375, 0.53515625, 0.83203125, 0.12402344],
        0.029321074,
    ),
    ("torch.randn(3)", [-1.4135132, 0.23363075, 0.034033183], 0.46827829),
    ("torch.randn(17)[-3:]", [0.11577193, -0.21541482, 0.65820205], 0.48023874),
    (
        "torch.randn(3, dtype=torch.float64)",
        [-1.41351313487, 0.233630753892, 0.0340331841431],
        0.46827829,
    ),
    (
        "torch.randn(17, dtype=torch.float16)[-3:]",
        [-0.41137695, 0.11578369, -0.2154541],
        0.24835098,
    ),
    (
        "torch.randn(4, 5).t().contiguous().t().normal_()[0, :3]",
        [-0.13349894, 0.61140561, 0.50304824],
        0.91899228,
    ),
    ("torch.zeros(5, 4).t().normal_()[0, :3]", [-1.4135132, -0.014521554, 1.8004361], 0.21778333),
    (
        "torch.rand_like(torch.zeros(1, 2, 2, 2), memory_format=torch.channels_last).flatten()[:4]",
        [0.43424124, 0.83020872, 0.029321074, 0.38249111],
        0.46827829,
    ),
    ("torch.randint(-3, 100, (6,))", [3, 88, 99, 50, -3, 12], 0.38249111),
    ("torch.randint(-(2**40), 2**50, (2,))", [90637475577073, 733992062006662], 0.029321074),
    ("torch.randperm(7)", [2, 4, 3, 5, 6, 1, 0], 0.38249111),
    ("torch.zeros(3).random_()", [7285284.0, 8977603.0, 13928456.0], 0.12386358),
    (
        "torch.zeros(3, dtype=torch.int64).random_()",
        [5435609932269944049, 564226004715812230, 3532934917758166329],
        0.38249111,
    ),
    (
        "torch.zeros(2, dtype=torch.float64).random_(-(2**60), 2**61)",
        [8.23923913843e17, 1.71714750932e18],
        0.029321074,
    ),
    ("torch.zeros(3).uniform_(-1.5, 2.25)", [0.12840463, 0.50666094, 1.6132827], 0.12386358),
    (
        "torch.zeros(400, dtype=torch.bfloat16).uniform_(0.1, 0.9).double().sum()",
        [193.529785156],
        0.31061292,
    ),
    ("torch.zeros(3).exponential_(1.7)", [0.37783584, 0.60370666, 0.15724485], 0.38249111),
    ("torch.zeros(4).geometric_(0.3)", [3.0, 2.0, 5.0, 8.0], 0.46827829),
    ("torch.zeros(3).cauchy_(0.5, 2.0)", [0.33582991, 1.4539779, -1.7039587], 0.38249111),
    ("torch.zeros(3).log_normal_(0.5, 0.7)", [0.61295778, 1.9416566, 1.6884707], 0.46827829),
    ("torch.zeros(8).bernoulli_(0.3)", [0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0], 0.00010573864),
    (
        "torch.bernoulli(torch.full((8,), 0.3))",
        [0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0],
        0.46827829,
    ),
    ("torch.normal(torch.ones(3), 2.0)", [-1.8270264, 1.4672616, 1.0680664], 0.46827829),
    ("torch.normal(2.0, torch.ones(3))", [0.58648682, 2.2336307, 2.0340333], 0.46827829),
    ("torch.poisson(torch.tensor([0.5, 3.0, 30.0, 12.0]))", [0.0, 2.0, 34.0, 13.0], 0.00010573864),
    (
        "torch.binomial(torch.tensor([3.0, 100.0]), torch.tensor([0.4, 0.7]))",
        [2.0, 75.0],
        0.35434002,
    ),
    ("torch._standard_gamma(torch.tensor([0.5, 3.0]))", [0.20393577, 1.8421952], 0.021381617),
    (
        "torch._sample_dirichlet(torch.tensor([0.5, 3.0, 1.0]))",
        [0.05927809, 0.53547156, 0.40525037],
        0.00010573864,
    ),
    ("torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4]), 3)", [3, 2, 1], 0.46827829),
    (
        "torch.multinomial(torch.tensor([0.1, 0.2, 0.3, 0.4]), 6, True)",
        [2, 3, 1, 0, 3, 1],
        0.20535016,
    ),
    (
        "F.dropout(torch.ones(8), 0.3)",
        [1.4285715, 1.4285715, 1.4285715, 1.4285715, 0.0, 1.4285715, 1.4285715, 0.0],
        0.00010573864,
    ),
    (
        "F.dropout(torch.ones(2, 4).t(), 0.5).flatten()",
        [2.0, 0.0, 0.0, 2.0, 2.0, 0.0, 2.0, 0.0],
        0.00010573864,
    ),
    (
        "F.alpha_dropout(torch.ones(4), 0.3, True)",
        [1.3150446, 1.3150446, 1.3150446, 1.3150446],
        0.46827829,
    ),
    (
        "F.dropout2d(torch.ones(2, 3, 1, 1), 0.5).flatten()",
        [2.0, 0.0, 2.0, 2.0, 0.0, 2.0],
        0.20535016,
    ),
    (
        "F.dropout1d(torch.ones(4, 2), 0.5).flatten()",
        [2.0, 2.0, 0.0, 0.0, 2.0, 2.0, 2.0, 2.0],
        0.46827829,
    ),
    ("F.dropout2d(torch.ones(2, 3, 1), 0.5).flatten()", [2.0, 0.0, 2.0, 2.0, 0.0, 2.0], 0.20535016),
    (
        "torch.native_dropout(torch.ones(8), 0.3, True)[0]",
        [1.4285715, 1.4285715, 1.4285715, 1.4285715, 0.0, 1.4285715, 1.4285715, 0.0],
        0.00010573864,
    ),
    (
        "F.rrelu(torch.tensor([-1.0, 2.0, 0.0, -3.0]), training=True)",
        [-0.22373542, 2.0, 0.0, -0.52160567],
        0.38249111,
    ),
    (
        "torch.rrelu(torch.tensor([-1.0, 2.0, -4.0], dtype=torch.float64), 0.2, 0.7, True)",
        [-0.436964984364, 2.0, -2.08334030555],
        0.029321074,
    ),
    ("F.gumbel_softmax(torch.zeros(3))", [0.24821839, 0.15534994, 0.59643167], 0.38249111),
    (
        "F.fractional_max_pool2d(torch.arange(36.0).reshape(1, 6, 6), 2, output_size=3).flatten()",
        [7.0, 9.0, 11.0, 19.0, 21.0, 23.0, 31.0, 33.0, 35.0],
        0.83020872,
    ),
    (
        "F.scaled_dot_product_attention(*[torch.eye(3)[None, None]] * 3, dropout_p=0.4).flatten()",
        [0.78513837, 0.0, 0.44076407, 0.44076407, 0.0, 0.44076407, 0.0, 0.0, 0.78513837],
        0.60028321,
    ),
    (
        "nn.init.trunc_normal_(torch.zeros(5), 0.5, 0.9, -1.0, 1.5)",
        [-0.77216184, 0.71026766, 0.53062987, 0.81492555, 0.48693061],
        0.20535016,
    ),
    (
        "nn.init.trunc_normal_(torch.zeros(5), 0.0, 1.0, 2.5, 4.0)",
        [2.5320725, 3.0496404, 2.8080254, 2.6857953, 2.5439816],
        0.094895005,
    ),
    (
        "nn.init.trunc_normal_(torch.zeros(5, dtype=torch.bfloat16), 1.0, 3.0, -0.5, 0.25)",
        [-0.17480469, -0.098632812, 0.12255859, -0.40625, -0.47851562],
        0.021381617,
    ),
    (
        "nn.init.trunc_normal_(torch.zeros(17, 2)[:, 0], 0.0, 1.0, -1.0, 1.0)[:5]",
        [-0.29775882, 0.23363075, 0.034033183, 0.34991726, -0.014521554],
        0.55575955,
    ),
    (
        "nn.init.trunc_normal_(torch.zeros(4, 10)[:, ::2], 0.5, 0.9, -1.0, 1.5)[3]",
        [0.069828071, 1.4181659, 0.38322097, 0.37985095, 0.91058826],
        0.91899228,
    ),
    (
        "nn.init.trunc_normal_(torch.zeros(3, 2, 9).transpose(0, 2)[::2])[0, 0]",
        [-1.4135132, 0.15344739, -0.12876794],
        0.67835569,
    ),
    (
        "torch.zeros(2, dtype=torch.complex64).normal_(2.0, 0.5)",
        [1.5002476, 2.0826008, 2.0120325, 2.1237144],
        0.46827829,
    ),
    (
        "torch.zeros(2, dtype=torch.complex64).normal_(torch.tensor(2.0), 0.5)",
        [1.5002476, 2.0826008, 2.0120325, 2.1237144],
        0.46827829,
    ),
    (
        "torch.normal(-1.0, 2.0, (20,), dtype=torch.complex128)[-2:]",
        [-0.961654993496, -0.863917442379, -0.40870585072, -0.289501581694],
        0.38989514,
    ),
    (
        "torch.normal(torch.tensor(2.0), 1.0, (2,))",
        [0.58648688, 2.2336307],
        0.029321074,
    ),
    (
        "torch.normal(torch.ones(2), 2.0, out=torch.zeros(2, dtype=torch.complex64))",
        [-0.99900949, 0.33040377, 1.0481302, 0.49485773],
        0.46827829,
    ),
    (
        "torch.normal(torch.ones(2), 2.0, out=torch.zeros(2, dtype=torch.float64))",
        [-1.82702626975, 1.46726150778],
        0.029321074,
    ),
    (
        "torch.normal(1.0, 2.0, (2,), out=torch.zeros(2, dtype=torch.float64))",
        [-1.82702626975, 1.46726150778],
        0.029321074,
    ),
    (
        "nn.init.sparse_(torch.zeros(4, 2), 0.5).flatten()",
        [-0.014135132, 0.0, 0.000340332, 0.0, 0.0, -0.00612362, 0.0, -0.014830546],
        0.37143725,
    ),
    (
        "nn.init.orthogonal_(torch.zeros(2, 2)).flatten()",
        [-0.99971032, 0.024070043, 0.024070043, 0.99971026],
        0.46827829,
    ),
    (
        "nn.init.kaiming_uniform_(torch.zeros(2, 2)).flatten()",
        [-0.22779504, 0.12162315, 1.1438766, -1.3029748],
        0.029321074,
    ),
    ("nn.Linear(2, 1).weight.flatten()", [-0.092996933, 0.049652442], 0.12386358),
    (
        "nn.LSTM(1, 1).weight_hh_l0.flatten()",
        [-0.94135785, 0.098792195, -0.23501778, 0.092519403],
        0.00010573864,
    ),
    (
        "nn.MultiheadAttention(2, 1).in_proj_weight.flatten()[:3]",
        [-0.20353135, 0.080124155, -0.054943614],
        0.60028321,
    ),
    (
        "nn.GRU(1, 2, 2, dropout=0.5)(torch.ones(2, 1, 1))[0].flatten()",
        [0.16157582, -0.35612527, 0.20697932, -0.46416387],
        0.32889938,
    ),
    (
        "nn.GRU(1, 2, 2, dropout=0.5)(pack(torch.ones(2, 2, 1), [2, 1]))[0].data.flatten()",
        [0.16157582, -0.35612527, 0.16157582, -0.35612527, 0.20697932, -0.46416387],
        0.32350248,
    ),
    ("torch.tensor(list(data.RandomSampler(range(6))))", [5, 2, 3, 1, 4, 0], 0.83020872),
    (
        "torch.tensor(list(data.RandomSampler(range(6), replacement=True, num_samples=4)))",
        [5, 4, 3, 0],
        0.83020872,
    ),
    ("torch.tensor(list(data.SubsetRandomSampler(range(6))))", [3, 1, 5, 4, 0, 2], 0.5493961),
    (
        "torch.tensor(list(data.WeightedRandomSampler([0.1, 0.2, 0.7], 5)))",
        [2, 2, 1, 0, 2],
        0.021381617,
    ),
    (
        "torch.tensor(list(data.distributed.DistributedSampler(range(6), 2, 1)))",
        [5, 0, 4],
        0.43424124,
    ),
    ("torch.tensor(data.random_split(range(6), [4, 2])[0].indices)", [3, 1, 5, 4], 0.5493961),
    (
        "torch.cat(list(data.DataLoader(range(6), 4, shuffle=True)))",
        [4, 2, 0, 5, 3, 1],
        0.029321074,
    ),
    (
        "torch.tensor(list(pipes.IterableWrapper(range(6)).shuffle(buffer_size=3)))",
        [0, 3, 1, 5, 2, 4],
        0.83020872,
    ),
    (
        "torch.tensor(list(data.DataLoader(pipes.IterableWrapper(range(6)).shuffle(), None)))",
        [3, 1, 5, 2, 0, 4],
        0.029321074,
    ),
    (
        "torch.tensor(list(map_pipes.SequenceWrapper(range(6)).shuffle()))",
        [4, 3, 1, 2, 5, 0],
        0.83020872,
    ),
    (
        "Sobol(2, True).draw(3).flatten()",
        [0.9183833, 0.85417217, 0.1801551, 0.10251568, 0.38969371, 0.52627617],
        0.751818,
    ),
    (
        "Sobol(3, True, seed=5).fast_forward(4).draw(2, dtype=torch.float64).flatten()",
        [
            0.236147894524,
            0.397326093167,
            0.700939887203,
            0.686862207949,
            0.64775609877,
            0.15155111067,
        ],
        0.43424124,
    ),
    ("torch.rand(2, generator=torch.Generator())", [0.26729524, 0.87252832], 0.43424124),
    (
        "torch.rand(2, generator=torch.Generator().manual_seed(-3))",
        [0.62486476, 0.50756115],
        0.43424124,
    ),
    (
        "torch.vmap(lambda x: x + torch.randn(1), randomness='different')(torch.zeros(4, 1)).t()",
        [-1.4135132, 0.23363075, 0.034033183, 0.34991726],
        0.46827829,
    ),
    (
        "torch.vmap(lambda x: F.dropout(x, 0.4), randomness='same')(torch.ones(2, 4)).flatten()",
        [1.6666666, 0.0, 1.6666666, 1.6666666, 1.6666666, 0.0, 1.6666666, 1.6666666],
        0.46827829,
    ),
    ("d.Geometric(torch.tensor([0.2, 0.6])).sample()", [3.0, 0.0], 0.83020872),
    ("d.Gumbel(1.0, 2.0).sample()", [1.3626716], 0.53510958),
    ("d.Kumaraswamy(2.0, 3.0).sample()", [0.49268883], 0.53510958),
    ("d.GeneralizedPareto(1.0, 2.0, 0.3).sample()", [2.2422929], 0.53510958),
    (
        "d.VonMises(torch.tensor([0.0, 1.0]), torch.tensor([0.5, 4.0])).sample()",
        [1.0704086, 0.2468233],
        0.20535016,
    ),
    (
        "d.Wishart(torch.tensor(4.0), torch.eye(2)).sample()",
        [1.9890373, -0.050005611, -0.050005611, 2.3799987],
        0.094895005,
    ),
    ("d.StudentT(3.0).sample()", [-1.4438401], 0.38249111),
    ("d.Laplace(0.0, 1.0).sample()", [-0.1410078], 0.53510958),
    (
        "d.NegativeBinomial(torch.tensor([3.0, 5.0]), torch.tensor([0.3, 0.6])).sample()",
        [1.0, 3.0],
        0.094895005,
    ),
    (
        "d.ContinuousBernoulli(torch.tensor([0.2, 0.6])).sample()",
        [0.28424838, 0.5847351],
        0.83020872,
    ),
    ("d.HalfNormal(2.0).sample()", [2.8270264], 0.029321074),
    ("d.Multinomial(5, torch.tensor([0.2, 0.8])).sample()", [1.0, 4.0], 0.021381617),
    (
        "d.RelaxedOneHotCategorical(torch.tensor(0.5), torch.tensor([0.2, 0.8])).sample()",
        [0.033927385, 0.96607262],
        0.83020872,
    ),
    (
        "d.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2)).sample()",
        [-1.1798824, -1.37948],
        0.46827829,
    ),
    ("d.FisherSnedecor(3.0, 4.0).sample()", [0.14029811], 0.46827829),
    ("d.LKJCholesky(2).sample()", [1.0, 0.0, -0.37123328, 0.92853963], 0.96339256),
    (
        "d.MixtureSameFamily(d.Categorical(torch.ones(2)), d.Normal(torch.ones(2), 1)).sample()",
        [1.0340332],
        0.46827829,
    ),
]

# the functions of the page of PyTorch's documentation about random sampling, and of generators
NUMBERS += [
    ("torch.tensor(torch.manual_seed(5).initial_seed())", [5], 0.83025187),
    ("torch.tensor(torch.initial_seed())", [17], 0.43424124),
    ("torch.tensor(torch.random.initial_seed())", [17], 0.43424124),
    ("torch.tensor(torch.get_rng_state().sum())", [323262], 0.43424124),
    ("torch.tensor(torch.random.get_rng_state().shape)", [5056], 0.43424124),
    ("torch.rand(2, generator=torch.default_generator)", [0.43424124, 0.53510958], 0.83020872),
    (
        "torch.set_rng_state(torch.Generator().manual_seed(3).get_state()) or torch.rand(2)",
        [0.0042635202, 0.10556936],
        0.28584248,
    ),
    (
        "torch.random.set_rng_state(torch.Generator().manual_seed(3).get_state()) or torch.rand(2)",
        [0.0042635202, 0.10556936],
        0.28584248,
    ),
    ("torch.tensor([[0.2, 0.8], [0.6, 0.4]]).bernoulli()", [0.0, 1.0, 0.0, 1.0], 0.029321074),
    (
        "torch.bernoulli(torch.tensor([[0.2, 0.8], [0.6, 0.4]]), 0.3)",
        [0.0, 0.0, 1.0, 1.0],
        0.46827829,
    ),
    ("torch.tensor([0.0, 10.0, 3.0, 1.0]).multinomial(2)", [3, 2], 0.46827829),
    ("torch.multinomial(torch.tensor([0.0, 10.0, 3.0, 1.0]), 3)", [3, 2, 1], 0.46827829),
    (
        "torch.multinomial(torch.tensor([0.0, 10.0, 3.0, 1.0]), 6, replacement=True)",
        [1, 1, 1, 1, 2, 1],
        0.20535016,
    ),
    (
        "torch.normal(torch.arange(1.0, 5.0), torch.arange(1, 0, -0.25))",
        [-0.41351318, 2.1752231, 3.0170166, 4.0874791],
        0.46827829,
    ),
    (
        "torch.normal(mean=0.5, std=torch.arange(1.0, 5.0))",
        [-0.91351318, 0.96726149, 0.60209954, 1.8996691],
        0.46827829,
    ),
    (
        "torch.normal(torch.arange(1.0, 5.0))",
        [-0.41351318, 2.2336307, 3.0340333, 4.3499174],
        0.46827829,
    ),
    ("torch.normal(2, 3, size=(1, 4))", [-2.2405393, 2.7008922, 2.1020997, 3.0497518], 0.46827829),
    ("torch.poisson(torch.tensor([1.0, 4.0, 20.0, 0.5]))", [1.0, 1.0, 23.0, 1.0], 0.00010573864),
    ("torch.randint(3, 5, (4,))", [4, 4, 4, 3], 0.029321074),
    ("torch.randint_like(torch.zeros(4), 3, 9)", [6.0, 6.0, 8.0, 7.0], 0.029321074),
    (
        "torch.randn_like(torch.zeros(4))",
        [-1.4135132, 0.23363075, 0.034033183, 0.34991726],
        0.46827829,
    ),
    ("torch.randperm(6)", [3, 1, 5, 4, 0, 2], 0.5493961),
    (
        "torch.zeros(4).bernoulli_(0.4, generator=torch.Generator().manual_seed(3))",
        [1.0, 1.0, 0.0, 1.0],
        0.43424124,
    ),
    (
        "torch.zeros(4).cauchy_(generator=torch.Generator().manual_seed(3))",
        [-9.2966127, -0.79221404, 1.1554374, -1.6326917],
        0.43424124,
    ),
    (
        "torch.zeros(4).exponential_(generator=torch.Generator().manual_seed(3))",
        [0.034703456, 0.33790958, 1.4824307, 0.19228345],
        0.43424124,
    ),
    (
        "torch.zeros(4).geometric_(0.3, generator=torch.Generator().manual_seed(3))",
        [10.0, 4.0, 1.0, 5.0],
        0.43424124,
    ),
    (
        "torch.zeros(4).log_normal_(generator=torch.Generator().manual_seed(3))",
        [13.552244, 3.8561404, 3.2477298, 0.7965734],
        0.43424124,
    ),
    (
        "torch.zeros(4).normal_(generator=torch.Generator().manual_seed(3))",
        [0.80327606, 0.17483339, 0.088978097, -0.61371803],
        0.43424124,
    ),
    (
        "torch.zeros(4).random_(generator=torch.Generator().manual_seed(3))",
        [71389.0, 1771142.0, 4795460.0, 452012.0],
        0.43424124,
    ),
    (
        "torch.zeros(4).uniform_(generator=torch.Generator().manual_seed(3))",
        [0.0042635202, 0.10556936, 0.28584248, 0.02695483],
        0.43424124,
    ),
    (
        "torch.zeros(2, 2).bernoulli_(torch.tensor([[0.2, 0.8], [0.6, 0.4]]))",
        [0.0, 1.0, 0.0, 1.0],
        0.029321074,
    ),
    ("torch.zeros(4, dtype=torch.int64).random_(2, 9)", [4, 8, 2, 4], 0.029321074),
    (
        "torch.quasirandom.SobolEngine(3).fast_forward(4).draw(2)",
        [0.375, 0.375, 0.625, 0.875, 0.875, 0.125],
        0.43424124,
    ),
    (
        "torch.quasirandom.SobolEngine(2).draw_base2(2)",
        [0.0, 0.0, 0.5, 0.5, 0.75, 0.25, 0.25, 0.75],
        0.43424124,
    ),
    ("torch.Generator().manual_seed(3).clone_state().get_state().sum()", [320060], 0.43424124),
    (
        "torch.rand(1, generator=torch.Generator().set_state("
        "torch.Generator().manual_seed(3).get_state()))",
        [0.0042635202],
        0.43424124,
    ),
    ("torch.tensor(torch.Generator().initial_seed())", [67280421310721], 0.43424124),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("expression", "numbers", "following"), NUMBERS, ids=[row[0] for row in NUMBERS]
)
def test_numbers_of_pytorch(expression, numbers, following):
    jaxgrad.manual_seed(17)
    result = eval(expression, dict(NAMES)).detach()
    result = jaxgrad.view_as_real(result) if result.is_complex() else result
    assert result.flatten().tolist() == pytest.approx(numbers, rel=3e-6, abs=2e-7)
    assert jaxgrad.rand(()).item() == pytest.approx(following, rel=1e-7)


@pytest.mark.parametrize("space", [jaxgrad, jaxgrad.random])
def test_a_random_seed_is_that_of_the_default_generator(space):
    seeds = [space.seed() for _ in range(2)]
    assert seeds[0] != seeds[1] == space.initial_seed() == jaxgrad.default_generator.initial_seed()


def test_forked_generators_draw_nothing_outside():
    jaxgrad.manual_seed(17)
    with jaxgrad.random.fork_rng():
        jaxgrad.rand(5)
    assert jaxgrad.rand(1).item() == pytest.approx(0.43424124)


def test_generators_of_the_cpu_have_no_offset_and_no_state_of_graphs():
    generator = jaxgrad.Generator()
    for call in (generator.get_offset, lambda: generator.set_offset(1)):
        with pytest.raises(RuntimeError, match="CPU Generator does not use offset"):
            call()
    for call in (generator.graphsafe_get_state, lambda: generator.graphsafe_set_state(generator)):
        with pytest.raises(NotImplementedError, match="is not supported in this Generator"):
            call()


def test_a_seed_of_gpus_leaves_the_numbers_of_the_cpu():
    jaxgrad.manual_seed(17)
    first = jaxgrad.rand(1).item()
    jaxgrad.cuda.manual_seed_all(17)
    if not jaxgrad.cuda.is_available():
        assert jaxgrad.rand(1).item() != first


def test_doubles_of_the_widest_range():
    """Those that PyTorch draws: none of the products is infinite."""
    jaxgrad.manual_seed(0)
    most = jaxgrad.finfo(jaxgrad.float64).max
    numbers = jaxgrad.empty(3, dtype=jaxgrad.float64).uniform_(-most / 2, most / 2)
    expected = [8.450110543690641e307, 3.7359634351951615e307, -7.30170042980938e306]
    assert numbers.tolist() == expected
