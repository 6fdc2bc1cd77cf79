"""sentence-transformers encodes, then trains pairs against each other.

needs: sentence_transformers, datasets, accelerate
"""
import json
import tempfile

from datasets import load_dataset
from sentence_transformers import (SentenceTransformer, SentenceTransformerTrainer,
                                   SentenceTransformerTrainingArguments, models)
from sentence_transformers.losses import MultipleNegativesRankingLoss
from transformers import BertConfig, BertModel, BertTokenizerFast

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/vocab.txt", "w", encoding="utf-8") as out:
            out.write("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                 *(f"w{i}" for i in range(300))]))
        BertTokenizerFast(f"{folder}/vocab.txt").save_pretrained(f"{folder}/bert")
        BertModel(BertConfig(hidden_size=64, intermediate_size=128, num_hidden_layers=2,
                             num_attention_heads=2, vocab_size=305)).save_pretrained(f"{folder}/bert")
        words = models.Transformer(f"{folder}/bert", max_seq_length=32)
        model = SentenceTransformer(modules=[words, models.Pooling(64)], device="cuda")
        assert model.encode(["w1 w2 w3", "w4"] * 20, batch_size=8).shape == (40, 64)
        # a table in memory is told apart by a pickle, which fails where packages have a folder of
        # their own
        with open(f"{folder}/pairs.jsonl", "w", encoding="utf-8") as out:
            for i in range(64):
                print(json.dumps({"anchor": f"w{i} w{i + 1}", "positive": f"w{i + 2}"}), file=out)
        pairs = load_dataset("json", data_files=f"{folder}/pairs.jsonl", split="train",
                             cache_dir=folder)
        settings = SentenceTransformerTrainingArguments(folder, per_device_train_batch_size=8,
                                                    max_steps=6, report_to=[], save_strategy="no")
        SentenceTransformerTrainer(model, settings, train_dataset=pairs,
                                   loss=MultipleNegativesRankingLoss(model)).train()
