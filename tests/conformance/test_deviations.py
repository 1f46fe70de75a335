"""Every result of our own has a quirk as its reason and differs from what was measured."""

import json


def test_each_deviation_is_of_a_quirk_and_gives_its_reason(deviations, deviation_reasons, cases):
    assert deviations
    for name, deviation in deviations.items():
        assert deviation["reason"] in cases[name]["quirks"]
        assert deviation_reasons[deviation["reason"]]
        measured = cases[name]["expected"]
        sane = deviation.get("instead") or measured | deviation["changed"]
        assert sane != measured


def test_every_case_the_manifest_counts_is_there(vectors):
    manifest = json.loads((vectors / "manifest.json").read_bytes())
    counted = {
        group: len(json.loads((vectors / f"{group}.json").read_bytes()))
        for group in manifest["cases"]
    }
    assert counted == manifest["cases"]
