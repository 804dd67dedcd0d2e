"""Embeddings of sentences: sentence_transformers on a small BERT."""

import contextlib
import tempfile
from pathlib import Path

from harness import as_array, fill, named, program, train

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abcdefgh", "cat", "dog", "sat"]
SENTENCES = ["a cat sat", "a dog sat", "b c d", "e f g h"]


@contextlib.contextmanager
def folder_with_tokenizer():
    """A folder with a tokenizer of WORDS, as `from_pretrained` reads it."""
    import transformers

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "vocab.txt").write_text("\n".join(WORDS))
        tokenizer = transformers.BertTokenizerFast(str(Path(folder, "vocab.txt")))
        tokenizer.save_pretrained(folder)
        yield folder


def save_bert(folder, class_name="BertModel", **options):
    import transformers

    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    sizes |= {"intermediate_size": 64, "max_position_embeddings": 64, "vocab_size": len(WORDS)}
    sizes |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    config = transformers.BertConfig(**sizes, **options)
    fill(getattr(transformers, class_name)(config)).save_pretrained(folder)


def sentence_model(folder, pooling_mode="mean"):
    from sentence_transformers import SentenceTransformer, models

    save_bert(folder)
    transformer = models.Transformer(folder)
    pooling = models.Pooling(transformer.get_embedding_dimension(), pooling_mode)
    modules = [transformer, pooling, models.Normalize()]
    return SentenceTransformer(modules=modules, device="cpu").eval()


def features_of(model, *columns):
    return [model.preprocess(column) for column in columns]


def trained(model, loss, features, labels):
    """`train` with a loss of the package, which changes the features that it gets."""
    return train(model, lambda _: loss([{**column} for column in features], labels))


@program("sentence-transformers", "encode")
def encode():
    """Embeddings, similarities, training, saving and loading."""
    import torch
    from sentence_transformers import SentenceTransformer, losses, util

    with folder_with_tokenizer() as folder:
        model = sentence_model(folder)
        embeddings = model.encode(SENTENCES, convert_to_tensor=True)
        results = {
            "embeddings": as_array(embeddings),
            "similarities": as_array(util.cos_sim(embeddings, embeddings)),
            "alone": model.encode("a cat", normalize_embeddings=True),
            "nearest": named(util.semantic_search(embeddings[:1], embeddings[1:]), "hit"),
        }
        results |= results.pop("nearest")
        loss = losses.CosineSimilarityLoss(model)
        features = features_of(model, SENTENCES[:2], SENTENCES[2:])
        results |= trained(model, loss, features, torch.tensor([0.9, 0.2]))
        model.save(str(Path(folder, "saved")))
        loaded = SentenceTransformer(str(Path(folder, "saved")), device="cpu").eval()
        results["loaded"] = loaded.encode(SENTENCES)
    return results


@program("sentence-transformers", "ranking", compiled=True)
def ranking():
    """Each sentence has its partner, and those of the others are its negatives."""
    from sentence_transformers import losses

    with folder_with_tokenizer() as folder:
        model = sentence_model(folder, "cls")
    features = features_of(model, SENTENCES, [*SENTENCES[::-1]])
    return trained(model, losses.MultipleNegativesRankingLoss(model), features, None)


@program("sentence-transformers", "losses")
def all_losses():
    """Losses of pairs, triplets and classes, and the gradients of the first layer."""
    import torch
    from sentence_transformers import losses

    with folder_with_tokenizer() as folder:
        model = sentence_model(folder)
    classes, scores = torch.tensor([0, 0, 1, 1]), torch.tensor([0.9, 0.7, 0.3, 0.1])
    pairs = SENTENCES, [*SENTENCES[::-1]]
    triplets = (*pairs, SENTENCES[1:] + SENTENCES[:1])
    ranking = losses.MultipleNegativesRankingLoss(model)
    cached = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=2)
    chosen = {
        "contrastive": (losses.ContrastiveLoss(model), pairs, classes),
        "online": (losses.OnlineContrastiveLoss(model), pairs, classes),
        "cosent": (losses.CoSENTLoss(model), pairs, scores),
        "angle": (losses.AnglELoss(model), pairs, scores),
        "triplet": (losses.TripletLoss(model), triplets, None),
        "symmetric": (losses.MultipleNegativesSymmetricRankingLoss(model), pairs, None),
        "cached": (cached, pairs, None),
        "matryoshka": (losses.MatryoshkaLoss(model, ranking, [32, 16, 8]), pairs, None),
        "all": (losses.BatchAllTripletLoss(model), pairs[:1], classes),
        "hard": (losses.BatchHardSoftMarginTripletLoss(model), pairs[:1], classes),
        "mse": (losses.MSELoss(model), pairs[:1], torch.linspace(-1, 1, 128).reshape(4, 32)),
    }
    results = {}
    for name, (loss, columns, labels) in chosen.items():
        model.zero_grad()
        value = loss(features_of(model, *columns), labels)
        value.backward()
        results[f"loss.{name}"] = as_array(value)
        weight = model[0].auto_model.embeddings.word_embeddings.weight
        results[f"gradient.{name}"] = as_array(weight.grad)
    return results


@program("sentence-transformers", "cross_encoder")
def cross_encoder():
    """A model that scores pairs of sentences."""
    import torch
    from sentence_transformers import CrossEncoder
    from sentence_transformers.cross_encoder import losses

    with folder_with_tokenizer() as folder:
        save_bert(folder, "BertForSequenceClassification", num_labels=1)
        model = CrossEncoder(folder, device="cpu").eval()
        pairs = [*zip(SENTENCES, SENTENCES[::-1], strict=True)]
        results = {"scores": model.predict(pairs)}
        results |= named(model.rank("a cat", SENTENCES), "rank")
        loss, labels = losses.BinaryCrossEntropyLoss(model), torch.tensor([1, 0, 1, 0])
        columns = [SENTENCES, SENTENCES[::-1]]
        results |= train(model, lambda _: loss(columns, labels))
        model.save_pretrained(str(Path(folder, "saved")))
        loaded = CrossEncoder(str(Path(folder, "saved")), device="cpu").eval()
        return results | {"loaded": loaded.predict(pairs)}


@program("sentence-transformers", "sparse_encoder")
def sparse_encoder():
    """Embeddings with an entry for each word."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.sparse_encoder import losses, models

    with folder_with_tokenizer() as folder:
        save_bert(folder, "BertForMaskedLM")
        transformer = models.Transformer(folder, transformer_task="fill-mask")
        model = SparseEncoder(modules=[transformer, models.SpladePooling()], device="cpu")
    results = {"embeddings": as_array(model.encode(SENTENCES))}
    model.train()  # without gradients its pooling writes in place
    ranking = losses.SparseMultipleNegativesRankingLoss(model)
    loss = losses.SpladeLoss(model, ranking, 1e-2, 1e-2)
    features = features_of(model, SENTENCES, [*SENTENCES[::-1]])

    def loss_of(_):
        parts = loss([{**column} for column in features], None)
        return sum(parts.values()), parts

    return results | train(model, loss_of)


@program("sentence-transformers", "static_embedding")
def static_embedding():
    """The mean of the embeddings of words."""
    import transformers
    from sentence_transformers import SentenceTransformer, losses, models

    with folder_with_tokenizer() as folder:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        static = models.StaticEmbedding(tokenizer, embedding_dim=16)
        model = fill(SentenceTransformer(modules=[static], device="cpu"))
        features = features_of(model, SENTENCES, [*SENTENCES[::-1]])
        loss = losses.MultipleNegativesRankingLoss(model)
        results = trained(model, loss, features, None)
        model.save(str(Path(folder, "saved")))
        loaded = SentenceTransformer(str(Path(folder, "saved")), device="cpu")
        return results | {"loaded": loaded.encode(SENTENCES)}
