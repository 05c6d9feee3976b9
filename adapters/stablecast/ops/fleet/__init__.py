"""Several stores as one: each source with its stores and its quorum, and the findings that only a comparison shows.

A store knows its own copy only. A message is safe by the number of its copies, and a source works by the number of its
stores. `survey` asks the monitors of all stores at once, `copies` joins the copies of each source, and `findings`
compares them for a look, which `screen`, `page` and `site` show.
"""
