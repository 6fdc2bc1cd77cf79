"""DPOTrainer of trl with a LoRA: the reference is the same model without its adapters.

needs: trl, transformers, datasets, tokenizers, peft
"""
import tempfile

from datasets import Dataset
from datasets.table import InMemoryTable
from peft import LoraConfig
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import DPOConfig, DPOTrainer

words = {word: i for i, word in enumerate(["<pad>", "<s>", "</s>", "<unk>",
                                           *(f"w{i}" for i in range(996))])}
core = Tokenizer(WordLevel(words, unk_token="<unk>"))
core.pre_tokenizer = Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", bos_token="<s>",
                                    eos_token="</s>", unk_token="<unk>")
config = LlamaConfig(hidden_size=128, intermediate_size=256, num_hidden_layers=2, vocab_size=1000,
                     num_attention_heads=4, pad_token_id=0)


def sentence(first, length):
    return " ".join(f"w{(first + i) % 996}" for i in range(length))


pairs = [{"prompt": sentence(i, 9), "chosen": sentence(2 * i, 12), "rejected": sentence(3 * i, 10)}
         for i in range(48)]
# with a name, for a pickle would tell it apart, which fails where packages have a folder of their own
data = Dataset(InMemoryTable.from_pylist(pairs), fingerprint="pairs")

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        settings = DPOConfig(folder, per_device_train_batch_size=4, max_steps=8, max_length=64,
                         bf16=True, report_to=[], save_strategy="no", logging_steps=2)
        DPOTrainer(LlamaForCausalLM(config), args=settings, train_dataset=data,
                   processing_class=tokenizer,
                   peft_config=LoraConfig(r=4, target_modules=["q_proj", "v_proj"],
                                          task_type="CAUSAL_LM")).train()
