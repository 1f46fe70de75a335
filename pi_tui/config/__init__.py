"""What the user chose: directories, settings, keys. The only room that reads HOME and environment.

Knows files and their rules, not what anybody does with the values. Foreign projects are not
believed: what a project file may not set is listed in `schema.USER_ONLY_SETTINGS`.
"""
