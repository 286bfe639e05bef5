"""Portraits of heads: how much of a head's attention can be said, and what is to be said of it.

```
texts ─► indicator tables of every pair of tokens ─► a log-linear fit of every head ─► explained
                                                 └─► the gain of every single fact ─► a sentence
```

A portrait is fitted on some documents, what is said of a head is chosen on others, and every number
is read on a third part.
"""
