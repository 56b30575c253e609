"""Real models of a few kilobytes with random weights, made on the spot: BERT with a word tokenizer.

They know nothing of meaning; but texts that share words are nearer to each other than others are.
"""

from pathlib import Path

_TEXT = """
how do i sign in to log authentication tomatoes need sun garden and the a storm boats sink what is
this model one text query passage search document : point it at passwords reset
"""
WORDS = _TEXT.split()


def tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast

    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    ids = {word: number for number, word in enumerate((*special, *dict.fromkeys(WORDS)))}
    made = Tokenizer(WordLevel(ids, unk_token="[UNK]"))
    made.normalizer = Lowercase()
    made.pre_tokenizer = Whitespace()
    made.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    named = dict(zip(names, special, strict=True))
    return PreTrainedTokenizerFast(tokenizer_object=made, model_max_length=64, **named)


def config(dimension, **more):
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(set(WORDS)) + 5,
        hidden_size=dimension,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=2 * dimension,
        max_position_embeddings=64,
        **more,
    )


def make_embedding_model(folder: Path, dimension=32, seed=0, prompts=None) -> Path:
    """A sentence-transformers folder: BERT and mean pooling."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertModel

    torch.manual_seed(seed)
    bare = folder.parent / f"{folder.name}-bare"
    BertModel(config(dimension)).save_pretrained(bare)
    tokenizer().save_pretrained(bare)
    words = Transformer(str(bare), max_seq_length=32)
    whole = SentenceTransformer(modules=[words, Pooling(dimension)], device="cpu")
    whole.prompts = dict(prompts or {})
    whole.save_pretrained(str(folder), create_model_card=False)
    return folder


def make_cross_encoder(folder: Path, labels=1, seed=0) -> Path:
    import torch
    from transformers import BertForSequenceClassification

    torch.manual_seed(seed)
    BertForSequenceClassification(config(32, num_labels=labels)).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return folder
