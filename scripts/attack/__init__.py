"""Attacks on a running service, and meters of what they do to others. They are not part of the installed package.

    python -m scripts.attack.fuzz_documents --count 20000 --seed 1
    python -m scripts.attack.fuzz_requests --count 20000 --seed 1
    python -m scripts.attack.fairness
    python -m scripts.attack.event_loop
    python -m scripts.attack.text_integrity.measure MODEL
    python -m scripts.attack.endurance

`tests/attacks` runs short versions of them that pass or fail.
"""
