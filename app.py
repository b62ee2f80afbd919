"""The app as it is served: its pages, the engine over HTTP beside them, and what a server does before anybody comes."""

import streamlit as st
from starlette.middleware import Middleware

from pages.ui.index_page import IndexPage
from pages.ui.security_headers import SecurityHeaders
from pages.ui.server_startup import WaitUntilPrepared, check_settings, preparing, routes
from pages.ui.upload_limits import UploadLimits
from transformer.api.heads_and_redirects import HeadsAndRedirects

check_settings()

app = st.App(
    "pages/main.py",
    lifespan=preparing,
    routes=routes(st.get_option("server.baseUrlPath")),
    middleware=[
        Middleware(HeadsAndRedirects),
        Middleware(SecurityHeaders),
        Middleware(IndexPage, st.get_option("server.baseUrlPath")),
        Middleware(WaitUntilPrepared),
        Middleware(UploadLimits),
    ],
)
