"""Other libraries' call shapes over cfmaps: change an import, keep the rest.

`cfmaps.adapters.dice_ml` has the shape of dice-ml, `cfmaps.adapters.alibi` that of alibi's ``CounterFactual``.
"""
