"""What is answered, as plain values: each is made of frames and hash details, and knows no Scope and no form.

`recording.Recording` is what was read; every answer takes one. `cachescope.report` and `cachescope.views` show what is here.
"""
