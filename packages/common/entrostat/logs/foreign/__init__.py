"""Logs of other trainers, read as run logs.

foreign_runs.py     which reader fits a file
gathering.py        runs from the rows of a file, with metrics under entrostat's names
told_apart.py       columns of text that tell runs apart
writers.py          rows that several processes of a run wrote for the same steps
units.py            units in the names of metrics
metric_names.py     entrostat's name for each metric of TRL, verl and OpenRLHF
wandb_tables.py     CSV and Parquet exports of Weights & Biases
event_files.py      event files of TensorBoard
json_logs.py        trainer_state.json of TRL, .jsonl files of verl
console_lines.py    console output of verl and OpenRLHF
notebooks.py        the table that a trainer shows in a notebook
starts.py           runs that follow one another in a file, and steps that a resumed run took again
rows.py             what a reader yields, and the bytes it may read
unwrapped.py        gzip unpacked, and text with a byte order mark decoded, before a reader sees it
table_numbers.py    numbers with decimal points or commas in the cells of a table
left_out.py         what could not be read, and the notes that tell it

Readers know nothing of names.
"""
