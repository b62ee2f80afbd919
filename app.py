"""Generate: watch a model write token by token, and see what it weighed and where it looked.

For each run of the page this file is the main script. The server imports it as a module, once and before anybody comes,
and finds in it the app that it serves.
"""

import streamlit as st

if __name__ == "__main__":
    from pages.ui.shell.sidebar import finish, open_page
    from pages.ui.views import generate

    session = open_page(
        "Generate",
        "Press *Generate* and the model writes on, one token at a time. Every token is tinted by how sure the model "
        "was; orange marks show where it looked to choose it.",
        writes=True,
    )
    session.require_tokens()
    generate.show(session)
    finish()
else:
    from pages.ui.serving import WAIT_UNTIL_PREPARED, check_settings, preparing, routes

    check_settings()

    app = st.App(__file__, lifespan=preparing, routes=routes(), middleware=[WAIT_UNTIL_PREPARED])
