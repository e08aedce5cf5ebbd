"""
Slices of a map
===============

Two columns vary, the others stay as they are in one row, the white dot.
"""

from matplotlib import pyplot
from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier

import cfmaps
from cfmaps import plot

X, y = load_iris(return_X_y=True, as_frame=True)
X.columns = ["sepal length", "sepal width", "petal length", "petal width"]
model = RandomForestClassifier(20, max_depth=4, random_state=0).fit(X, load_iris().target_names[y])
cfmap = cfmaps.CounterfactualMap(model)
cfmap.build(max_nodes=500_000)

# %%
# What the model says, which region holds the smallest change to "virginica" from every point (one shade per region),
# and how far it is.

figure, axes = pyplot.subplots(1, 3, figsize=(15, 4.6), layout="constrained")
for ax, show in zip(axes, ["decision", "counterfactual", "distance"], strict=True):
    plot.plane(cfmap, X.iloc[60], ("petal length", "petal width"), show=show, target="virginica", ax=ax)
