"""Trains the tokenizer that is shipped, `engines/builtin/text/tokenizer.json`: a byte-level BPE.

What it learns from may be passed on: this project's pages and sources (Apache 2.0), the docstrings
of CPython's library (PSF licence) and the paragraphs below, which are the project's own. Their
scripts other than Latin are rare enough to be cut within characters, as in any serving vocabulary.
Equal text gives an equal file; a file trained on another day's sources differs, and so do the
texts of scripted tokens.

    python -m benchmarks.train_tokenizer --output /tmp/tokenizer.json

The last line of output is one JSON document.
"""

import argparse
import ast
import hashlib
import json
import os
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from engines.vocabulary import SHIPPED_TOKENIZER

VOCAB_SIZE = 8192
END_OF_TEXT = "<|endoftext|>"
ROOT = Path(__file__).parents[1]
OWN_FILES = ("*.md", "docs/*.md", "workloads/**/*.py", "engines/**/*.py", "harness/**/*.py")

OWN_PARAGRAPHS = """
The collector stops every stream at once; whoever waits for a token waits for it too. 🙂
Die Müllabfuhr hält alle Straßen auf: wer auf ein Zeichen wartet, wartet länger. Größe zählt.
Le ramasse-miettes arrête tout ; celui qui attend un mot attend aussi la fin du ménage. Ça coûte.
El recolector detiene cada flujo a la vez; quien espera una señal espera también la limpieza. ¿Sí?
Zbieracz śmieci zatrzymuje każdy strumień; kto czeka na znak, czeka też na sprzątanie. Żółć, gęś.
Çöp toplayıcı bütün akışları durdurur; bir işaret bekleyen, temizliğin bitmesini de bekler.
Ο συλλέκτης σταματά κάθε ροή· όποιος περιμένει ένα σύμβολο περιμένει και το τέλος του καθαρισμού.
Сборщик мусора останавливает все потоки разом; кто ждёт слова, ждёт и конца уборки.
אוסף האשפה עוצר את כל הזרמים; מי שמחכה לאות מחכה גם לסוף הניקיון.
جامع القمامة يوقف كل التدفقات معا؛ ومن ينتظر حرفا ينتظر نهاية التنظيف أيضا.
कचरा उठाने वाला हर धारा को रोक देता है; जो अक्षर की प्रतीक्षा करता है, वह सफ़ाई की भी करता है।
ตัวเก็บขยะหยุดทุกกระแสพร้อมกัน ใครที่รอตัวอักษรก็ต้องรอให้ทำความสะอาดเสร็จด้วย
垃圾回收器让所有的流同时停下；等一个字的人，也得等打扫完。
塵を集める者がすべての流れを止める。一文字を待つ人は、掃除が終わるのも待つ。
쓰레기 수집기는 모든 흐름을 한꺼번에 멈춘다. 글자 하나를 기다리는 사람은 청소도 기다린다.
Emoji of one and of several code points: 🗑️ 🧹 ⏱️ 👩‍💻 👨‍👩‍👧‍👦 🇪🇺 👍🏽 ❤️‍🔥 🏴‍☠️ ∑∫√≤≠ → ↔ ½ µs 10 °C.
"""


def own_text() -> Iterator[str]:
    """This project's pages and sources, in order."""
    for pattern in OWN_FILES:
        for path in sorted(ROOT.glob(pattern)):
            yield path.read_text()


def library_docstrings() -> Iterator[str]:
    """Docstrings of CPython's library, tests left out."""
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.glob("*.py")) + sorted(library.glob("*/*.py")):
        if path.parts[len(library.parts)] in ("test", "site-packages", "idlelib", "lib2to3"):
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:
            continue  # kept there to be refused
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                yield ast.get_docstring(node) or ""


def train(texts: Iterator[str], vocab_size: int) -> str:
    """The tokenizer's file."""
    # The order in which threads count must not decide between pairs that are equally frequent.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as ByteLevelDecoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel
    from tokenizers.trainers import BpeTrainer

    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_OF_TEXT],
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return str(tokenizer.to_str())


def main() -> None:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=SHIPPED_TOKENIZER)
    parser.add_argument("--vocab-size", type=int, default=VOCAB_SIZE)
    options = parser.parse_args()
    texts = [*own_text(), *library_docstrings(), OWN_PARAGRAPHS]
    file = train(iter(texts), options.vocab_size)
    options.output.write_text(file)
    report = {
        "output": str(options.output),
        "characters": sum(map(len, texts)),
        "bytes": len(file.encode()),
        "sha256": hashlib.sha256(file.encode()).hexdigest(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
