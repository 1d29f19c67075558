"""One thin file for each contract of others: a middleware for create_agent (``middleware``), nodes for
LangGraph (``langgraph``), the facts as a LangGraph BaseStore (``store``). All need the extra ``[agent]``, and
nothing of the core imports them.
"""
