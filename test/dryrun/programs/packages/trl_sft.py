"""SFTTrainer of trl on a small Llama, with a tokenizer made in memory.

needs: trl, transformers, datasets, tokenizers
"""
import tempfile

from datasets import Dataset
from datasets.table import InMemoryTable
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

words = {word: i for i, word in enumerate(["<pad>", "<s>", "</s>", "<unk>",
                                           *(f"w{i}" for i in range(996))])}
core = Tokenizer(WordLevel(words, unk_token="<unk>"))
core.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<s>",
                                    eos_token="</s>", unk_token="<unk>")
config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, vocab_size=1000,
                     num_attention_heads=4, pad_token_id=0)
texts = [{"text": " ".join(f"w{(i * j) % 996}" for j in range(20 + i % 9))} for i in range(48)]

# with a name, for a pickle would tell it apart, which fails where packages have a folder of their own
data = Dataset(InMemoryTable.from_pylist(texts), fingerprint="texts")

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        settings = SFTConfig(folder, per_device_train_batch_size=4, max_steps=8, max_length=64,
                         bf16=True, report_to=[], save_strategy="no", logging_steps=2)
        SFTTrainer(LlamaForCausalLM(config), settings, train_dataset=data,
                   processing_class=tokenizer).train()
