"""Writes tables as other programs write them, and lets fluentps read each: read as it is, or refused with a sentence that tells the way out.

usage: dialects.py FLUENTPS FOLDER
A line is printed for each file. The exit code is 1 if one is neither read right nor refused right.
"""
import csv
import gzip
import os
import re
import subprocess
import sys

import numpy as np
import pandas as pd
from scipy import io, sparse
from sklearn.datasets import dump_svmlight_file

fluentps, folder = sys.argv[1:]
os.chdir(folder)
draw = np.random.default_rng(1)
ROWS = 40
A = np.round(draw.standard_normal(ROWS) * 10, 3)
B = draw.integers(-5, 100, ROWS)
CITY = draw.choice(["Rome", "Oslo", "New York"], ROWS)
KIND = draw.choice(["no", "yes"], ROWS)
N = (KIND == "yes").astype(int)
text = pd.DataFrame({"a": A, "b": B, "class": KIND})  # numbers, and a class that is a text
number = text.assign(**{"class": N})
mixed = pd.DataFrame({"a": A, "city": CITY, "class": KIND})
TEXT = np.column_stack([A, B])
ONEHOT = np.column_stack([A] + [(CITY == c).astype(float) for c in sorted(set(CITY))])
cases = []


def reads(name, path, x=TEXT, y=N, says="", set="csv", **keys):
    cases.append((name, path, set, keys, x, y, says))


def refuses(name, path, says, set="csv", **keys):
    cases.append((name, path, set, keys, None, None, says))


def pandas(name, frame, **how):
    path = f"p{len(cases)}.csv" + how.pop("suffix", "")
    how.setdefault("index", False)
    frame.to_csv(path, **how)
    return name, path


# pandas
refuses(*pandas("pandas", text, index=True), r"column 1 of the header has no name.*set data\.drop: \[1\]")
reads(*pandas("pandas, its index dropped", text, index=True), drop=[1])
reads(*pandas("pandas, index=False", text), says='header found, comma, class in column "class", 2 classes: "no", "yes"')
reads(*pandas("pandas, header=False", text, header=False), says="no header, comma")
reads(*pandas("pandas, sep=';'", text, sep=";"), says="semicolon")
reads(*pandas("pandas, sep=tab", text, sep="\t"), says="tab")
reads(*pandas("pandas, sep='|'", text, sep="|"), says="bar")
reads(*pandas("pandas, sep=' '", text, sep=" "), says="space")
refuses(*pandas("pandas, decimal=','", text, sep=";", decimal=","), r"set data\.decimal: comma|and data\.decimal: comma")
reads(*pandas("pandas, decimal=',', said", text, sep=";", decimal=","), decimal="comma", says="semicolon, decimal commas")
reads(*pandas("pandas, all quoted", text, quoting=csv.QUOTE_ALL))
reads(*pandas("pandas, texts quoted", mixed, quoting=csv.QUOTE_NONNUMERIC), x=ONEHOT, columns={"city": "onehot"})
reads(*pandas("pandas, gzip", text, suffix=".gz"))
reads(*pandas("pandas, bz2", text, suffix=".bz2"))
refuses(*pandas("pandas, xz", text, suffix=".xz"), r"packed with xz; unpack it: xz --decompress")
refuses(*pandas("pandas, zip", text, suffix=".zip"), r"an archive of zip.*unpack it")
holes = number.assign(a=number["a"].where(number.index % 7 != 3))
filled = np.column_stack([holes["a"].fillna(holes["a"].mean()), B])
refuses(*pandas("pandas, missing values", holes), r'value "" is not a number.*or set data\.missing: mean')
reads(*pandas("pandas, missing values filled in", holes), x=filled, missing="mean", says="6 missing values filled in")
reads(*pandas("pandas, na_rep=NULL", holes, na_rep="NULL"), x=filled, missing="mean")
plain = pd.DataFrame(np.column_stack([A, B, N]))
refuses(*pandas("pandas, an array", plain), r"it cannot be told whether the first line, .*set data\.header: true or false")
reads(*pandas("pandas, an array, said", plain), header=True)
refuses(*pandas("pandas, UTF-16", text, encoding="utf-16"), r"text in UTF-16; save it as UTF-8: iconv")
refuses(*pandas("pandas, Latin-1", text.replace({"no": "nö"}), encoding="latin-1"), r"class .* is not in UTF-8; save the file as UTF-8")
reads(*pandas("pandas, UTF-8", text.replace({"no": "nö"})), says='"nö", "yes"')
reads(*pandas("pandas, a byte order mark", text, encoding="utf-8-sig"))
reads(*pandas("pandas, lines of Windows", text, lineterminator="\r\n"))
reads(*pandas("pandas, lines of old Macs", text, lineterminator="\r"))
reads(*pandas("pandas, exponents", text, float_format="%.8e"))
two = text.copy()
two.columns = pd.MultiIndex.from_tuples([("x", "a"), ("x", "b"), ("y", "class")])
refuses(*pandas("pandas, a header of two lines", two), r"the first two lines have names, as pandas writes .*keep one line of names")
truth = number.assign(b=B > 40)
refuses(*pandas("pandas, truth values", truth), r'value "(True|False)" is not a number; if column "b" has texts, write data\.columns: \{"b": onehot\}')
reads(*pandas("pandas, truth values onehot", truth), x=np.column_stack([A, B <= 40, B > 40]), columns={"b": "onehot"})
dates = number.assign(b=pd.date_range("2026-01-01", periods=ROWS))
refuses(*pandas("pandas, dates", dates), r'value "2026-01-01" is not a number')
reads(*pandas("pandas, dates dropped", dates), x=A[:, None], drop=["b"])
reads(*pandas("pandas, classes as floats", number.assign(**{"class": N.astype(float)})))
reads(*pandas("pandas, classes -1 and 1", number.assign(**{"class": 2 * N - 1})), says="classes are -1, 1, and are numbered 0 to 1")
refuses(*pandas("pandas, a column of texts", mixed), r'is not a number; if column "city" has texts, write data\.columns')
reads(*pandas("pandas, a column of texts onehot", mixed), x=ONEHOT, columns={"city": "onehot"}, says='column "city" has 3 texts')
reads(*pandas("pandas, the class first", number[["class", "a", "b"]]), label="class")
mixed.to_excel("sheet.xlsx", index=False)
refuses("pandas, to_excel", "sheet.xlsx", r"an archive of zip, as \.xlsx.*save the sheet as CSV")

# NumPy
np.savetxt("n1.txt", plain.values)
reads("numpy.savetxt", "n1.txt", says="no header, space")
np.savetxt("n2.csv", plain.values, delimiter=",", fmt="%g")
reads("numpy.savetxt, commas", "n2.csv")
np.savetxt("n3.csv", plain.values, delimiter=",", header="a,b,class")
reads("numpy.savetxt, header", "n3.csv", says="1 line of comments skipped")
np.savetxt("n4.txt", plain.values, delimiter="\t", fmt=["%.3f", "%d", "%d"])
reads("numpy.savetxt, tabs", "n4.txt")
np.save("n5.npy", plain.values)
refuses("numpy.save", "n5.npy", r"an array of NumPy; set data\.set: npy")

# Python's csv
for dialect in csv.list_dialects():
    with open(f"c-{dialect}.csv", "w", newline="") as f:
        out = csv.writer(f, dialect)
        out.writerow(mixed.columns)
        out.writerows(mixed.values)
    reads(f"csv, {dialect}", f"c-{dialect}.csv", x=ONEHOT, columns={"city": "onehot"})

# R
number.to_csv("r.in", index=False)
mixed.to_csv("rm.in", index=False)
subprocess.run(["Rscript", "-e", """
t <- read.csv("r.in"); m <- read.csv("rm.in")
write.csv(t, "r1.csv"); write.csv(t, "r2.csv", row.names=FALSE); write.csv2(t, "r3.csv", row.names=FALSE)
write.table(t, "r4.txt"); write.table(t, "r5.txt", row.names=FALSE, quote=FALSE, sep="\\t")
write.table(m, "r6.txt", row.names=FALSE); saveRDS(t, "r7.rds"); u <- t; u$a[4] <- NA; write.csv(u, "r8.csv", row.names=FALSE)
write.table(t, "r9.txt", row.names=FALSE, col.names=FALSE)"""], check=True)
refuses("R, write.csv", "r1.csv", r"column 1 of the header has no name.*row\.names=FALSE")
reads("R, write.csv, names of rows dropped", "r1.csv", drop=[1])
reads("R, write.csv, row.names=FALSE", "r2.csv")
refuses("R, write.csv2", "r3.csv", r"and data\.decimal: comma")
reads("R, write.csv2, said", "r3.csv", decimal="comma")
refuses("R, write.table", "r4.txt", r"the header has 3 names, but rows have 4 values, as R's write\.table.*row\.names=FALSE")
reads("R, write.table, tabs", "r5.txt")
reads("R, write.table, texts", "r6.txt", x=ONEHOT, columns={"city": "onehot"})
refuses("R, saveRDS", "r7.rds", r"an object of R.*write\.csv")
refuses("R, NA", "r8.csv", r'value "NA" is not a number.*data\.missing: mean')
reads("R, write.table without names", "r9.txt")

# Spreadsheets: gnumeric writes what Excel writes in English and in German.
subprocess.run(["ssconvert", "sheet.xlsx", "s1.csv"], check=True, capture_output=True)
reads("a spreadsheet, English", "s1.csv", x=ONEHOT, columns={"city": "onehot"})
with open("s2.csv", "w", encoding="utf-8-sig", newline="") as f:
    for line in mixed.to_csv(index=False, sep=";", decimal=",").splitlines():
        f.write(line + "\r\n")
reads("Excel in German", "s2.csv", x=ONEHOT, columns={"city": "onehot"}, decimal="comma")
with open("s3.csv", "w", newline="") as f:
    f.write("sep=;\r\n" + text.to_csv(index=False, sep=";", lineterminator="\r\n"))
reads("Excel, sep=;", "s3.csv")

# scikit-learn
dump_svmlight_file(TEXT, N, "k1.svm")
reads("scikit-learn", "k1.svm", set="libsvm", says="an index 0 occurs, so indices count from 0")
dump_svmlight_file(TEXT, 2 * N - 1, "k2.svm", zero_based=False, comment="made here", query_id=np.arange(ROWS))
reads("scikit-learn, one-based, comment, qid", "k2.svm", set="libsvm", says="qid:, which is ignored")
dump_svmlight_file(TEXT, N.astype(float), "k3.svm", zero_based=False)
reads("scikit-learn, labels as floats", "k3.svm", set="libsvm")
dump_svmlight_file(TEXT, np.column_stack([N, np.ones_like(N)]), "k4.svm", multilabel=True)
refuses("scikit-learn, several labels", "k4.svm", r"several labels a row \(multi-label\) are not read", set="libsvm")
dump_svmlight_file(TEXT, A, "k5.svm")
refuses("scikit-learn, regression", "k5.svm", r"if it is a value to predict, set data\.task: regress", set="libsvm")
refuses("LIBSVM as csv", "k3.svm", r"it looks like libsvm: set data\.set: libsvm")

# UCI and the collection of LIBSVM
with open("u1.data", "w") as f:
    f.write(text.to_csv(index=False, header=False).replace("\n", "\n") + "\n\n")
reads("UCI, iris.data", "u1.data")
with open("u2.data", "w") as f:
    f.write(number.assign(**{"class": N + 1})[["class", "a", "b"]].to_csv(index=False, header=False))
reads("UCI, wine.data", "u2.data", label="first", says="classes are 1, 2, and are numbered 0 to 1")
with open("u3.data", "w") as f:
    f.writelines(f"{a}, {c}, {'>50K' if n else '<=50K'}\n" for a, c, n in zip(A, CITY, N))
reads("UCI, adult.data", "u3.data", x=ONEHOT, columns={"2": "onehot"}, says='"<=50K", ">50K"')
with open("u4.data", "w") as f:
    f.writelines(f"{'e' if n else 'p'},{c[0]}\n" for c, n in zip(CITY, N))
refuses("UCI, mushroom", "u4.data", r"it cannot be told whether the first line.*set data\.header")
reads("UCI, mushroom, said", "u4.data", x=ONEHOT[:, [1, 2, 3]], y=1 - N, header=False, label="first", columns={"2": "onehot"})
with open("u5.data", "w") as f:
    f.writelines(f"  {a:8.3f}   {b:4d}    {n}\n" for a, b, n in zip(A, B, N))
reads("UCI, columns of spaces", "u5.data", says="space")
with open("u6.svm", "w") as f:
    f.writelines(f"{'+1' if n else '-1'} 1:{a} 2:{b} \n" for a, b, n in zip(A, B, N))
reads("LIBSVM, a9a", "u6.svm", set="libsvm")

# Ratings
U, V = draw.integers(0, 9, ROWS), draw.integers(0, 7, ROWS)
R = np.round(draw.uniform(1, 5, ROWS) * 2) / 2
for name, line in {"MovieLens 100K": "{}\t{}\t{}\t881250949\n", "MovieLens 1M": "{}::{}::{}::978300760\n",
                   "MovieLens 20M": '{},{},{},"2005-04-02 23:53:47"\n', "quoted": '"{}";"{}";"{}"\n'}.items():
    path = f"m{len(cases)}.txt"
    with open(path, "w") as f:
        f.writelines(line.format(u, v, r) for u, v, r in zip(U, V, R))
    reads(name, path, x=np.column_stack([U, V, R]), y=None, set="ratings", center=False)
pd.DataFrame({"userId": U, "movieId": V, "rating": R, "timestamp": 964982703}).to_csv("ratings.csv", index=False)
reads("MovieLens, ratings.csv", "ratings.csv", x=np.column_stack([U, V, R]), y=None, set="ratings", center=False, says="the first line is a header")
names = np.array([f"user{u}" for u in U])
pd.DataFrame({"user": names, "item": V, "rating": R}).to_csv("named.csv", index=False)
order = {name: i for i, name in enumerate(sorted(set(names)))}
reads("ratings with names", "named.csv", x=np.column_stack([[order[n] for n in names], V, R]), y=None, set="ratings", center=False,
      says="rows are numbered in their order")
matrix = sparse.coo_matrix((R, (np.arange(ROWS), V)), shape=(ROWS, 7))
io.mmwrite("mm.mtx", matrix)
reads("scipy, mmwrite", "mm.mtx", x=np.column_stack([matrix.row, matrix.col, R]), y=None, set="ratings", center=False, says="MatrixMarket, 40 x 7")
io.mmwrite("mp.mtx", matrix, field="pattern")
refuses("scipy, a pattern", "mp.mtx", r"entries have no value.*scipy\.io\.mmwrite", set="ratings")


def yaml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f'"{k}": {v}' for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(str(v) for v in value) + "]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def wrong(case):
    name, path, kind, keys, x, y, says = case
    model = "matrix_factorization" if kind == "ratings" else "softmax"
    with open("c.yaml", "w") as f:
        f.write(f"name: dialect\ndata:\n  set: {kind}\n  path: {path}\n" + "".join(f"  {k}: {yaml(v)}\n" for k, v in keys.items()) +
                f"model: {{name: {model}}}\ntrain: {{batch_per_worker: 8, optimizer: {{name: sgd, lr: 0.1}}, stop: {{epochs: 1}}}}\n"
                'sync: [{match: "*", scheme: bsp}]\n')
    ran = subprocess.run([fluentps, "data", "c.yaml"], capture_output=True, text=True)
    if x is None:
        if ran.returncode != 2 or not re.search(says, ran.stderr, re.S):
            return f"exit code {ran.returncode}, want a refusal with {says!r}: {ran.stdout[:300]}{ran.stderr}"
        return ""
    if ran.returncode != 0:
        return f"refused: {ran.stderr}"
    if says not in ran.stdout:
        return f"does not say {says!r}: {ran.stdout[:400]}"
    lines = ran.stdout.split("as the model gets them:\n")[1].split("\n\n")[0].splitlines()
    for row, line in enumerate(lines):
        values, _, label = line.partition("->")
        got = np.array(values.split(), dtype=float)
        if got.shape != x[row].shape or not np.allclose(got, np.array(x[row], dtype=float), rtol=1e-4, atol=1e-4):
            return f"row {row} is {got}, want {x[row]}"
        if y is not None and int(label.split()[0]) != y[row]:
            return f"row {row} is of class {label}, want {y[row]}"
    if f"{ROWS} training rows" not in ran.stdout or len(lines) != 5:
        return f"other rows: {ran.stdout[:300]}"
    return ""


bad = 0
for case in cases:
    why = wrong(case)
    bad += bool(why)
    print(f"{'WRONG' if why else 'read' if case[4] is not None else 'refused':8}{case[0]}" + (f": {why}" if why else ""))
print(f"{len(cases)} files, {sum(c[4] is None for c in cases)} of them refused, {bad} wrong")
sys.exit(bad > 0)
