"""The app's host: what it takes to show a page of the frontend as a page of Streamlit.

The page state (model, prompt, layer and so on) belongs to the tab; its address shows it. `parameters.json` says what it
consists of. Python reads a frozen copy once a run (`page_state.py`). Both sides talk through one component, which every
page draws first (`exchange.py`, `exchange.js`):

1. A run tells the tab which values it draws something of (`drawn`), and which *reading* of the whole view it has: the
   address's as the session began and after Back or Forward, or the tab's.
2. Where the tab holds others, it sends all it holds, once; that runs the page. While a page is being left it sends
   nothing: Streamlit would run that page again, and the visitor would stay there. The next page's run tells again.
3. Dials are parameters whose owner is a widget of Streamlit: Python tells them, and the tab takes them as long as it
   agrees with Python's reading. A tab that holds another view, after Back or a restart of the server, doesn't agree:
   it sends that view, and Python's widgets take it.
4. Everything else Python changes by numbered commands, of which the tab obeys each once. They are repeated in every run
   until the tab says that it has obeyed them, so none is lost, and none overwrites what was typed since.
5. Where a lesson's view has taken the place of the visitor's own, Python asks what the tab held before: it saves that.

`tests/browser/test_page_protocol_browser.py` shows all this in a tiny app.
"""
