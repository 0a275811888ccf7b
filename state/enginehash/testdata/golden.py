"""Block hashes by Python's own serializers, to hold ours against.

Reads a list of cases as JSON, writes them with their digests. Only the sha256
algorithm works with the standard library alone; golden.json was made with cbor2
4.1.0 and xxhash 4 from:

    python3 golden.py < cases.json > golden.json     (cases: golden.json without digests)
"""

import hashlib
import json
import pickle
import sys


def algorithm(name):
    if name.endswith("_cbor"):
        import cbor2

        dump = lambda v: cbor2.dumps(v, canonical=True)
    else:
        dump = lambda v: pickle.dumps(v, protocol=5)
    if name.startswith("xxhash"):
        import xxhash

        return lambda v: xxhash.xxh3_128_digest(dump(v))
    return lambda v: hashlib.sha256(dump(v)).digest()


def extras(case, start, end):
    bare = case.get("untagged", False)
    keys = []
    if case.get("lora"):
        keys.append(case["lora"] if bare else ("lora", case["lora"], case["lora_path"]))
    for ident, offset, length in case.get("media") or []:
        if offset < end and offset + length > start:
            keys.append((ident, offset - start) if bare else ("mm", ident, offset - start))
    if start == 0 and case.get("salt"):
        keys.append(case["salt"] if bare else ("cache_salt", case["salt"]))
    return tuple(keys) or None


def digests(case):
    hash_of = algorithm(case["algo"])
    tokens = [t for first, after in case["tokens"] or [] for t in range(first, after)]
    size = case["block_size"]
    parent = hash_of(case["seed"])
    out = []
    for start in range(0, len(tokens) - size + 1, size):
        block = tuple(tokens[start : start + size])
        parent = hash_of((parent, block, extras(case, start, start + size)))
        out.append(parent.hex())
    return out


cases = json.load(sys.stdin)
for c in cases:
    c["digests"] = digests(c)
print("[\n" + ",\n".join(json.dumps(c) for c in cases) + "\n]")
