"""
One answer, and many
====================

What changes, what each change adds to the distance, and what happens over many rows.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier

import cfmaps
from cfmaps import plot

data = load_breast_cancer(as_frame=True)
X = data.data[["worst radius", "worst texture", "worst smoothness", "worst concavity"]]
y = data.target_names[data.target]
model = RandomForestClassifier(50, max_depth=5, random_state=0).fit(X, y)
cfmap = cfmaps.CounterfactualMap(model, data=X)

# %%
# The changes of one answer, the largest first: their sum is the distance.

plot.waterfall(cfmap.explain(X.iloc[0], weights="std"))

# %%
# Several answers as small multiples: here those of three norms.

plot.alternatives([cfmap.explain(X.iloc[2], weights="std", distance=norm) for norm in ("l1", "l2", "linf")])

# %%
# How far the rows are from another decision, by what was decided.

many = cfmap.explain_many(X, weights="std")
plot.distances(many, by=many.sources)

# %%
# Which features change how often, and which way.

plot.changed_features(many)

# %%
# Distance against the number of features that change.

plot.costs_by_changes(many)

# %%
# The first questions grow the map, later ones find it grown.

fresh = cfmaps.CounterfactualMap(model, data=X)
plot.growth(fresh, np.asarray(X)[:200], weights="std")
