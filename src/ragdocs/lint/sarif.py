"""A report as SARIF 2.1.0, the format in which code scanners exchange findings.

Deterministic: no time, no machine, no version of anything but this program.
"""

from collections.abc import Mapping
from urllib.parse import quote

from ragdocs import __version__
from ragdocs.lint.findings import RULES, LintFinding, LintPlace, LintReport
from ragdocs.places import real_path

VERSION = "2.1.0"
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_sarif(report: LintReport, prefixes: Mapping[str, str]) -> dict[str, object]:
    """`prefixes`: for each tree, what comes before its paths, so that a reader of the report who
    stands in the project's folder finds the files."""
    ran = [rule for rule in RULES if rule in report.counts]
    numbers = {rule: number for number, rule in enumerate(ran)}
    driver = {
        "name": "ragdocs",
        "version": __version__,
        "rules": [
            {
                "id": rule.value,
                "shortDescription": {"text": RULES[rule].summary},
                "defaultConfiguration": {"level": RULES[rule].severity.value},
            }
            for rule in ran
        ],
    }
    results = [_result(finding, numbers[finding.rule], prefixes) for finding in report.findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _result(finding: LintFinding, number: int, prefixes: Mapping[str, str]) -> dict[str, object]:
    place = LintPlace(finding.tree, finding.path, finding.line_start, finding.line_end)
    location = _location(place, prefixes)
    result: dict[str, object] = {
        "ruleId": finding.rule.value,
        "ruleIndex": number,
        "level": finding.severity.value,
        "message": {"text": finding.message},
        "locations": [location],
    }
    if finding.related:
        result["relatedLocations"] = [
            {"id": at, **_location(each, prefixes)} for at, each in enumerate(finding.related)
        ]
    return result


def _location(place: LintPlace, prefixes: Mapping[str, str]) -> dict[str, object]:
    path = prefixes.get(place.tree, "") + real_path(place.path)
    return {
        "physicalLocation": {
            # A name that is not UTF-8 is kept byte for byte.
            "artifactLocation": {"uri": quote(path, errors="surrogateescape")},
            "region": {"startLine": place.line_start, "endLine": place.line_end},
        }
    }
